#include "passes/structures/mask_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace argosy {
namespace {

/// Where attention is not allowed, masks add at most this number.
constexpr double kVerySmall = -1e4;

/// How many arguments are read, by the prefix of an op's name.
constexpr std::pair<std::string_view, size_t> kArgumentCounts[] = {
    {"aten.arange.start_step", 3},
    {"aten.full.default", 2},
    {"aten.unsqueeze.default", 2},
    {"aten.add.", 3},
    {"aten.sub.", 3},
    {"aten.le.", 2},
    {"aten.lt.", 2},
    {"aten.ge.", 2},
    {"aten.gt.", 2},
    {"aten.bitwise_and.", 2},
    {"aten.logical_and.", 2},
    {"aten.where.", 3},
};

const ValueId* value_of(const Node& node, size_t argument) { return node.arguments[argument].get_if<ValueId>(); }

/// Dims are aligned at the end, as broadcasting does.
LinearElements sum(SymContext& symbols, const LinearElements& a, const LinearElements& b, int64_t sign) {
  LinearElements result;
  size_t rank = std::max(a.coefficients.size(), b.coefficients.size());
  result.coefficients.assign(rank, 0);
  for (size_t i = 0; i < a.coefficients.size(); ++i)
    result.coefficients[rank - a.coefficients.size() + i] += a.coefficients[i];
  for (size_t i = 0; i < b.coefficients.size(); ++i)
    result.coefficients[rank - b.coefficients.size() + i] += sign * b.coefficients[i];
  result.constant = symbols.add(a.constant, symbols.mul(symbols.integer(sign), b.constant));
  return result;
}

bool is_constant(const LinearElements& elements) {
  return std::ranges::all_of(elements.coefficients, [](int64_t c) { return c == 0; });
}

std::optional<double> real_of(const Argument& argument) {
  if (const auto* real = argument.get_if<double>()) return *real;
  if (const auto* number = argument.get_if<int64_t>()) return static_cast<double>(*number);
  return std::nullopt;
}

}  // namespace

MaskReader::MaskReader(const Program& program, const Component& component, const Call& call)
    : program_(program), graph_(component.entry()), symbols_(*component.symbols), call_(call) {
  if (call_.positions.is_valid()) {
    known_[call_.positions.index].elements = LinearElements{{1}, symbols_.sub(call_.total, call_.sequence)};
  }
  if (call_.padding.is_valid()) known_[call_.padding.index].padding = Padding{};
  for (NodeId id : graph_.nodes()) {
    const Node& node = graph_[id];
    if (node.outputs.size() != 1 || graph_[node.outputs[0]].tensor() == nullptr) continue;
    Known found = read_node(node, *graph_[node.outputs[0]].tensor());
    if (found.is_something()) known_[node.outputs[0].index] = std::move(found);
  }
}

std::optional<LinearElements> MaskReader::elements_of(const Argument& argument) const {
  if (const auto* number = argument.get_if<int64_t>()) return LinearElements{{}, symbols_.integer(*number)};
  const ValueId* id = argument.get_if<ValueId>();
  if (id == nullptr) return std::nullopt;
  if (const SymType* number = graph_[*id].number()) {
    if (number->kind != SymType::Kind::kInt || !number->expression.is_valid()) return std::nullopt;
    return LinearElements{{}, number->expression};
  }
  return known(*id).elements;
}

const MaskReader::Known& MaskReader::known(ValueId value) const {
  static const Known nothing;
  auto found = known_.find(value.index);
  return found == known_.end() ? nothing : found->second;
}

MaskReader::Known MaskReader::read_comparison(const Node& node, std::string_view op) const {
  auto a = elements_of(node.arguments[0]), b = elements_of(node.arguments[1]);
  if (!a || !b) return {};
  bool is_less = op == "le" || op == "lt";
  LinearElements difference = is_less ? sum(symbols_, *b, *a, -1) : sum(symbols_, *a, *b, -1);
  if (op == "lt" || op == "gt") difference.constant = symbols_.sub(difference.constant, symbols_.integer(1));
  Known result;
  result.allowed = std::vector<Atom>{{std::move(difference)}};
  return result;
}

/// The padding mask by indices of batch and key: [arange(batch)[:, None, None, None], arange(total)].
MaskReader::Known MaskReader::read_index(const Node& node) const {
  const ValueId padding = *value_of(node, 0);
  const auto* indices = node.arguments[1].get_if<ValueList>();
  const Padding& source = *known(padding).padding;
  if (indices == nullptr || indices->size() != 2 || graph_[padding].tensor()->shape.size() != 2) return {};
  if (source.batch != 2 || source.key != 1) return {};
  // Each index must count up from 0 along one dim, which is as long as the dim that it is an index of.
  auto counted_dim = [&](ValueId index, SymExpr size) -> std::optional<size_t> {
    const std::optional<LinearElements>& elements = known(index).elements;
    if (!elements || elements->constant.as_integer() != std::optional<int64_t>(0)) return std::nullopt;
    const std::vector<SymExpr>& shape = graph_[index].tensor()->shape;
    std::optional<size_t> dim;
    for (size_t i = 0; i < elements->coefficients.size(); ++i) {
      if (elements->coefficients[i] == 0) continue;
      size_t from_behind = elements->coefficients.size() - i;
      if (elements->coefficients[i] != 1 || dim || from_behind > shape.size()) return std::nullopt;
      if (shape[shape.size() - from_behind] != size) return std::nullopt;
      dim = from_behind;
    }
    return dim;
  };
  const std::vector<SymExpr>& sizes = graph_[padding].tensor()->shape;
  std::optional<size_t> batch = counted_dim((*indices)[0], sizes[0]), key = counted_dim((*indices)[1], sizes[1]);
  if (!batch || !key || *batch == *key) return {};
  Known result;
  result.padding = Padding{*batch, *key};
  if (graph_[padding].tensor()->dtype == DType::kBool) result.allowed = std::vector<Atom>{};
  return result;
}

/// Dims are aligned at the end, so that conditions of tensors of different rank mean the same ones.
MaskReader::Known MaskReader::both(const Known& a, const Known& b) {
  Known result;
  bool is_other_padding =
      a.padding && b.padding && (a.padding->batch != b.padding->batch || a.padding->key != b.padding->key);
  if (!a.allowed || !b.allowed || is_other_padding) return result;
  result.allowed = a.allowed;
  result.allowed->insert(result.allowed->end(), b.allowed->begin(), b.allowed->end());
  result.padding = a.padding ? a.padding : b.padding;
  return result;
}

void MaskReader::insert_dim(Known& known, size_t rank, size_t place) {
  auto insert = [&](LinearElements& elements) {
    elements.coefficients.insert(elements.coefficients.begin(), rank - elements.coefficients.size(), 0);
    elements.coefficients.insert(elements.coefficients.begin() + static_cast<std::ptrdiff_t>(place), 0);
  };
  if (known.elements) insert(*known.elements);
  if (known.allowed) {
    for (Atom& atom : *known.allowed) insert(atom.elements);
  }
  if (known.padding) {
    for (size_t* from_behind : {&known.padding->batch, &known.padding->key}) {
      if (rank - *from_behind < place) ++*from_behind;
    }
  }
}

MaskReader::Known MaskReader::read_node(const Node& node, const TensorType& type) const {
  std::string_view name = program_.schemas[node.op].name;
  Known result;
  // Schemas come with the program: another version of an op may have fewer arguments.
  size_t wanted = 1;
  for (const auto& [op, count] : kArgumentCounts) {
    if (name.starts_with(op)) wanted = count;
  }
  if (node.arguments.size() < wanted) return result;
  auto self = [&]() -> const Known& { return known(*value_of(node, 0)); };
  bool has_self =
      !node.arguments.empty() && value_of(node, 0) != nullptr && graph_[*value_of(node, 0)].tensor() != nullptr;
  if (name == "aten.arange.start_step") {
    auto start = elements_of(node.arguments[0]);
    const auto* step = node.arguments[2].get_if<int64_t>();
    if (start && step != nullptr) result.elements = LinearElements{{*step}, start->constant};
  } else if (name == "aten.full.default") {
    auto fill = real_of(node.arguments[1]);
    if (const auto* flag = node.arguments[1].get_if<bool>()) fill = *flag ? 1 : 0;
    if (!fill) return result;
    if (type.dtype == DType::kBool && *fill != 0) result.allowed = std::vector<Atom>{};
    result.fill = fill;
    bool is_small = std::abs(*fill) <= static_cast<double>(std::numeric_limits<int32_t>::max());
    if (type.dtype != DType::kBool && is_small && *fill == std::trunc(*fill)) {
      result.elements =
          LinearElements{std::vector<int64_t>(type.shape.size(), 0), symbols_.integer(static_cast<int64_t>(*fill))};
    }
  } else if (!has_self) {
    return result;
  } else if (name == "aten.to.dtype") {
    result = self();
    if (type.dtype == DType::kBool && result.padding && !result.allowed) {
      result.allowed = std::vector<Atom>{};
    } else if (type.dtype == DType::kBool && result.elements) {
      std::optional<int64_t> number =
          is_constant(*result.elements) ? result.elements->constant.as_integer() : std::nullopt;
      result = {};
      if (number && *number != 0) result.allowed = std::vector<Atom>{};
    } else if (type.dtype != DType::kBool && type.dtype != DType::kI64 && type.dtype != DType::kI32) {
      result = {};
    }
  } else if (name == "aten.unsqueeze.default") {
    const auto* dim = node.arguments[1].get_if<int64_t>();
    if (dim == nullptr) return {};
    size_t rank = graph_[*value_of(node, 0)].tensor()->shape.size();
    size_t place = static_cast<size_t>(*dim < 0 ? *dim + static_cast<int64_t>(rank) + 1 : *dim);
    if (place > rank) return {};
    result = self();
    insert_dim(result, rank, place);
  } else if (name == "aten.expand.default" || name == "aten.alias.default" || name == "aten.clone.default") {
    result = self();
  } else if (name == "aten.index.Tensor" && self().padding && (!self().allowed || self().allowed->empty())) {
    return read_index(node);
  } else if (name == "aten.index.Tensor" || name == "aten.slice.Tensor" || name == "aten.reshape.default") {
    if (self().padding) return result;
    // Of equal elements it does not matter which ones are taken.
    if (self().allowed && self().allowed->empty()) result.allowed = std::vector<Atom>{};
    if (self().elements && is_constant(*self().elements))
      result.elements = LinearElements{{}, self().elements->constant};
  } else if (name == "aten.add.Scalar" || name == "aten.add.Tensor" || name == "aten.sub.Scalar" ||
             name == "aten.sub.Tensor") {
    auto a = elements_of(node.arguments[0]), b = elements_of(node.arguments[1]);
    const auto* alpha = node.arguments[2].get_if<int64_t>();
    if (a && b && alpha != nullptr && *alpha == 1) result.elements = sum(symbols_, *a, *b, name[5] == 'a' ? 1 : -1);
  } else if (name.starts_with("aten.le.") || name.starts_with("aten.lt.") || name.starts_with("aten.ge.") ||
             name.starts_with("aten.gt.")) {
    result = read_comparison(node, name.substr(5, 2));
  } else if (name == "aten.bitwise_and.Tensor" || name == "aten.logical_and.default") {
    const ValueId* other = value_of(node, 1);
    if (type.dtype != DType::kBool || other == nullptr) return result;
    return both(self(), known(*other));
  } else if (name == "aten.where.ScalarOther" || name == "aten.where.self") {
    const ValueId *values = value_of(node, 1), *others = value_of(node, 2);
    auto other = others != nullptr ? known(*others).fill : real_of(node.arguments[2]);
    if (values == nullptr || !other || *other > kVerySmall || type.dtype == DType::kBool) return result;
    const auto& zeros = known(*values).elements;
    if (zeros && is_constant(*zeros) && zeros->constant.as_integer() == std::optional<int64_t>(0)) {
      result.allowed = self().allowed;
      result.padding = self().padding;
    }
  }
  return result;
}

std::optional<PositionCondition> MaskReader::condition(const LinearElements& elements, const TensorType& mask) const {
  const std::vector<int64_t>& coefficients = elements.coefficients;
  PositionCondition result;
  size_t rank = coefficients.size();
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (coefficients[i] != 0) return std::nullopt;
  }
  result.key = rank >= 1 ? coefficients[rank - 1] : 0;
  result.token = rank >= 2 ? coefficients[rank - 2] : 0;
  if (result.key != 0 && mask.shape.back() != call_.total) return std::nullopt;
  if (result.token != 0 && (mask.shape.size() < 2 || mask.shape[mask.shape.size() - 2] != call_.sequence))
    return std::nullopt;
  // Token i is at past + i.
  SymExpr past = symbols_.sub(call_.total, call_.sequence);
  SymExpr rest = symbols_.sub(elements.constant, symbols_.mul(symbols_.integer(result.token), past));
  auto offset = rest.as_integer();
  if (!offset) return std::nullopt;
  result.offset = *offset;
  return result;
}

bool MaskReader::always_holds(const PositionCondition& condition) const {
  if (std::max(std::abs(condition.key), std::abs(condition.token)) > 1) return false;
  int64_t least = condition.offset;
  if (condition.key < 0) least += condition.key * (call_.largest - 1);
  if (condition.token < 0) least += condition.token * (call_.largest - 1);
  return least >= 0;
}

bool MaskReader::hides_nothing(ValueId mask) const {
  const TensorType* type = graph_[mask].tensor();
  const Known& found = known(mask);
  if (type == nullptr || !found.allowed || found.padding) return false;
  return std::ranges::all_of(*found.allowed, [&](const Atom& atom) {
    auto one = condition(atom.elements, *type);
    return one && always_holds(*one);
  });
}

std::optional<MaskMeaning> MaskReader::read(ValueId mask) const {
  const TensorType* type = graph_[mask].tensor();
  if (type == nullptr || type->shape.size() < 2) return std::nullopt;
  const size_t rank = type->shape.size();
  const Known& found = known(mask);
  if (!found.allowed) return std::nullopt;
  for (size_t i = 0; i + 2 < rank; ++i) {
    bool is_batch = i == 0 && rank == 4 && call_.padding.is_valid();
    if (!is_batch && type->shape[i].as_integer() != std::optional<int64_t>(1)) return std::nullopt;
  }
  MaskMeaning result;
  if (found.padding) {
    if (rank != 4 || found.padding->batch != 4 || found.padding->key != 1 || type->shape.back() != call_.total)
      return std::nullopt;
    result.has_padding = true;
  }
  for (const Atom& atom : *found.allowed) {
    auto one = condition(atom.elements, *type);
    if (!one) return std::nullopt;
    if (!always_holds(*one)) result.conditions.push_back(*one);
  }
  std::ranges::sort(result.conditions);
  result.conditions.erase(std::unique(result.conditions.begin(), result.conditions.end()), result.conditions.end());
  return result;
}

}  // namespace argosy
