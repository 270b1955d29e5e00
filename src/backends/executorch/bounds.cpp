#include "backends/executorch/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace argosy::executorch {
namespace {

std::string name_of(const Component& component, SymExpr symbol) {
  auto found = component.dim_names.find(std::string(symbol.symbol_name()));
  return found == component.dim_names.end() ? std::string(symbol.symbol_name()) : found->second;
}

/// Lowest and highest value of an expression with real numbers, such as the size of a range with steps; nullopt: it is
/// unbounded, or not one of a few functions.
struct RealRange {
  double min, max;
};

std::optional<RealRange> real_range(const SymContext& symbols, SymExpr expression) {
  if (auto real = expression.as_real()) return RealRange{*real, *real};
  SymRange known = symbols.range(expression);
  if (known.min != SymRange::kNoMin && known.max != SymRange::kNoMax) {
    return RealRange{static_cast<double>(known.min), static_cast<double>(known.max)};
  }
  std::vector<RealRange> parts;
  for (SymExpr operand : expression.operands()) {
    std::optional<RealRange> part = real_range(symbols, operand);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  if (parts.empty()) return std::nullopt;
  RealRange total = parts[0];
  std::string_view function = expression.function_name();
  if (expression.kind() == SymKind::kAdd || function == "Add") {
    for (size_t i = 1; i < parts.size(); ++i) total = {total.min + parts[i].min, total.max + parts[i].max};
    return total;
  }
  if (expression.kind() == SymKind::kMul || function == "Mul") {
    for (size_t i = 1; i < parts.size(); ++i) {
      auto [low, high] = std::minmax(
          {total.min * parts[i].min, total.min * parts[i].max, total.max * parts[i].min, total.max * parts[i].max});
      total = {low, high};
    }
    return total;
  }
  if (expression.kind() == SymKind::kTrueDiv || function == "FloatTrueDiv" || function == "IntTrueDiv") {
    if (parts.size() != 2 || parts[1].min <= 0) return std::nullopt;
    auto [low, high] = std::minmax(
        {total.min / parts[1].min, total.min / parts[1].max, total.max / parts[1].min, total.max / parts[1].max});
    return RealRange{low, high};
  }
  if (function == "ToFloat") return total;
  if (function == "CeilToInt") return RealRange{std::ceil(total.min), std::ceil(total.max)};
  if (function == "FloorToInt" || function == "TruncToInt")
    return RealRange{std::floor(total.min), std::ceil(total.max)};
  return std::nullopt;
}

/// How many elements a tensor has at most.
int64_t largest_count(const Component& component, const TensorType& type) {
  int64_t count = 1;
  for (SymExpr size : type.shape) {
    int64_t bound = size.is_valid() ? component.symbols->range(size).max : SymRange::kNoMax;
    if (bound == SymRange::kNoMax || __builtin_mul_overflow(count, bound, &count)) return SymRange::kNoMax;
  }
  return count;
}

/// torch calls what depends on data u0, u1, …
void bound_by(const Component& component, SymExpr size, int64_t most) {
  if (!size.is_valid() || !size.symbol_name().starts_with("u") || most == SymRange::kNoMax) return;
  SymRange range = component.symbols->range(size);
  if (range.max <= most) return;
  range.max = std::max(most, range.min);
  component.symbols->set_range(size, range);
}

/// Bounds that the op of a node implies for the sizes of its results.
void bound_results(const OpSchema& schema, const Component& component, const Graph& graph, const Node& node) {
  auto type_of = [&](const Argument& argument) {
    const ValueId* id = argument.get_if<ValueId>();
    return id == nullptr ? nullptr : graph[*id].tensor();
  };
  const TensorType* self = node.arguments.empty() ? nullptr : type_of(node.arguments[0]);
  const TensorType* result = node.outputs.empty() ? nullptr : graph[node.outputs[0]].tensor();
  if (self == nullptr || result == nullptr) return;
  if (schema.name == "aten.nonzero.default" || schema.name == "aten.masked_select.default" ||
      schema.name == "aten.nonzero_numpy.default" || schema.name == "aten.where.default" ||
      schema.name == "aten._unique2.default" || schema.name == "aten.unique_consecutive.default") {
    if (!result->shape.empty()) bound_by(component, result->shape[0], largest_count(component, *self));
  } else if (schema.name == "aten.index.Tensor") {
    const auto* indices = node.arguments[1].get_if<ValueList>();
    for (size_t i = 0; indices != nullptr && i < indices->size(); ++i) {
      const TensorType* index = (*indices)[i].is_valid() ? graph[(*indices)[i]].tensor() : nullptr;
      if (index == nullptr || index->dtype != DType::kBool) continue;
      for (SymExpr size : result->shape) {
        bool is_new = std::ranges::find(self->shape, size) == self->shape.end();
        if (is_new) bound_by(component, size, largest_count(component, *index));
      }
    }
  } else if (schema.name == "aten.slice.Tensor" || schema.name == "aten.split_with_sizes.default") {
    for (ValueId output : node.outputs) {
      const TensorType* part = graph[output].tensor();
      for (size_t i = 0; part != nullptr && i < part->shape.size() && i < self->shape.size(); ++i) {
        if (part->shape[i] != self->shape[i])
          bound_by(component, part->shape[i], component.symbols->range(self->shape[i]).max);
      }
    }
  }
}

}  // namespace

void bound_selections(const Program& program, const Component& component) {
  for (const Graph& graph : component.graphs) {
    for (NodeId node : graph.nodes()) bound_results(program.schemas[graph[node].op], component, graph, graph[node]);
  }
}

Status set_bounds(const Component& component, const std::map<std::string, int64_t>& largest) {
  for (SymExpr symbol : component.symbols->symbols()) {
    if (!symbol.is_integer_valued()) continue;
    std::string name = name_of(component, symbol);
    auto asked = largest.find(name);
    if (asked == largest.end()) continue;
    SymRange range = component.symbols->range(symbol);
    if (asked->second < range.min) {
      return fail(ErrorCode::kInvalidInput,
                  format("{} is to be at most {}, but the model needs at least {}", name, asked->second, range.min));
    }
    range.max = std::min(range.max, asked->second);
    component.symbols->set_range(symbol, range);
  }
  return {};
}

Result<std::vector<int32_t>> largest_sizes(const Component& component, const TensorType& type) {
  std::vector<int32_t> sizes;
  for (SymExpr size : type.shape) {
    int64_t bound = size.is_valid() ? component.symbols->range(size).max : SymRange::kNoMax;
    if (bound == SymRange::kNoMax && size.is_valid()) {
      std::optional<RealRange> range = real_range(*component.symbols, size);
      if (range && range->max < std::numeric_limits<int32_t>::max()) bound = static_cast<int64_t>(range->max);
    }
    if (bound > std::numeric_limits<int32_t>::max()) {
      std::string text = size.is_valid() ? component.symbols->to_text(size) : "?";
      return fail(ErrorCode::kInvalidInput, format("a dim of size {} has no upper bound", text),
                  "give one with --shape NAME=MAX or --max_seq_len");
    }
    sizes.push_back(static_cast<int32_t>(bound));
  }
  return sizes;
}

bool is_dynamic(const TensorType& type) {
  for (SymExpr size : type.shape) {
    if (!size.is_valid() || !size.as_integer()) return true;
  }
  return false;
}

}  // namespace argosy::executorch
