#include "passes/structures/position_factors.h"

#include <array>

#include "passes/structures/heads.h"

namespace argosy {
namespace {

constexpr int kMaxSteps = 12;  // more nodes than any model has between positions and factors

/// The sizes of a tensor that are not 1.
Sizes long_sizes(const AtenBuilder& f, ValueId tensor) {
  Sizes result;
  for (SymExpr size : f.shape(tensor)) {
    if (size.as_integer() != 1) result.push_back(size);
  }
  return result;
}

/// What a tensor is before casts and before dims of size 1 were added or repeated.
ValueId before_arrangement(const AtenBuilder& f, ValueId tensor) {
  constexpr std::array<std::string_view, 4> kOps = {"aten.to.dtype", "aten.unsqueeze.default", "aten.expand.default",
                                                    "aten.reshape.default"};
  for (int i = 0; i < kMaxSteps; ++i) {
    const Node* node = nullptr;
    for (std::string_view op : kOps) {
      if (node == nullptr) node = f.made_by(tensor, op);
    }
    if (node == nullptr) return tensor;
    ValueId source = AtenBuilder::operand(*node, 0);
    bool is_repeat = f.made_by(tensor, "aten.expand.default") != nullptr;
    if (!is_repeat && long_sizes(f, source) != long_sizes(f, tensor)) return tensor;
    tensor = source;
  }
  return tensor;
}

bool is_input(const AtenBuilder& f, ValueId value) {
  return !f.graph()[value].producer.is_valid() && !f.graph()[value].weight.is_valid();
}

int64_t last(const AtenBuilder& f, ValueId tensor) { return static_cast<int64_t>(f.rank(tensor)) - 1; }

/// position * frequency, as [batch or 1, tokens, columns] or with the last two dims exchanged.
bool read_product(const AtenBuilder& f, ValueId product, bool is_exchanged, SymExpr tokens, int64_t columns,
                  PositionFactors& result) {
  const Node* node = f.made_by(product, "aten.mul.Tensor");
  bool is_matmul = false;
  for (std::string_view op : {"aten.matmul.default", "aten.bmm.default"}) {
    if (node != nullptr) break;
    node = f.made_by(product, op);
    is_matmul = node != nullptr;
  }
  if (node == nullptr || f.rank(product) != 3 || f.dtype(product) != DType::kF32) return false;
  ValueId a = AtenBuilder::operand(*node, 0), b = AtenBuilder::operand(*node, 1);
  // A product of matrices that adds nothing up.
  if (is_matmul && (f.rank(a) < 2 || f.size(a, -1).as_integer() != 1)) return false;
  if (f.dtype(a) != DType::kF32 || f.dtype(b) != DType::kF32) return false;
  if (f.size(product, is_exchanged ? 2 : 1) != tokens || f.size(product, is_exchanged ? 1 : 2) != f.integer(columns))
    return false;
  for (auto [first, second] : {std::pair(a, b), std::pair(b, a)}) {
    ValueId positions = before_arrangement(f, first), frequencies = before_arrangement(f, second);
    bool fits = is_input(f, positions) && f.dtype(positions) == DType::kI64 && f.rank(positions) == 2 &&
                f.size(positions, 1) == tokens && f.graph()[frequencies].weight.is_valid() &&
                long_sizes(f, frequencies) == Sizes{f.integer(columns)};
    if (!fits) continue;
    result.positions = positions;
    result.frequencies = frequencies;
    return true;
  }
  return false;
}

}  // namespace

std::optional<PositionFactors> read_position_factors(const AtenBuilder& f, ValueId factors) {
  if (f.rank(factors) != 3) return std::nullopt;
  SymExpr tokens = f.size(factors, 1);
  std::optional<int64_t> columns = f.size(factors, 2).as_integer();
  if (!columns || *columns < 2) return std::nullopt;
  PositionFactors result;
  bool has_function = false, is_exchanged = false;
  int64_t part = 0;  // every so many of the elements are taken, from the first on; 0: all are
  ValueId at = factors;
  for (int i = 0; i < kMaxSteps; ++i) {
    const Node* node = f.made_by(at, "aten.to.dtype");
    if (node != nullptr) {
      if (f.dtype(AtenBuilder::operand(*node, 0)) != DType::kF32) return std::nullopt;
    } else if ((node = f.made_by(at, "aten.slice.Tensor")) != nullptr) {
      if (part != 0) return std::nullopt;
      part = starts_at(f, *node, 0, 1) ? 1 : 2;
      if (!starts_at(f, *node, 0, part)) return std::nullopt;
    } else if ((node = f.made_by(at, "aten.mul.Scalar")) != nullptr) {
      const auto* number = node->arguments[1].get_if<double>();
      if (number == nullptr || has_function) return std::nullopt;
      result.scale *= *number;
    } else if ((node = f.made_by(at, "aten.cos.default")) != nullptr ||
               (node = f.made_by(at, "aten.sin.default")) != nullptr) {
      if (has_function) return std::nullopt;
      has_function = true;
      result.is_sine = f.made_by(at, "aten.sin.default") != nullptr;
    } else if ((node = f.made_by(at, "aten.cat.default")) != nullptr) {
      // The first half of cat(angles, angles).
      const auto* parts = node->arguments[0].get_if<ValueList>();
      const auto* dim = node->arguments[1].get_if<int64_t>();
      bool is_doubled = parts != nullptr && parts->size() == 2 && (*parts)[0] == (*parts)[1] && dim != nullptr &&
                        *dim == last(f, at) && f.size((*parts)[0], -1).as_integer() == *columns;
      if (part != 1 || !is_doubled) return std::nullopt;
      part = 0;
      at = (*parts)[0];
      continue;
    } else if ((node = f.made_by(at, "aten.reshape.default")) != nullptr) {
      // Every second of elements that come twice each.
      const Node* inserted = f.made_by(f.made_by(node, 0, "aten.expand.default"), 0, "aten.unsqueeze.default");
      if (part != 2 || inserted == nullptr || f.rank(inserted->outputs[0]) != f.rank(at) + 1 ||
          f.size(inserted->outputs[0], -1).as_integer() != 1)
        return std::nullopt;
      node = inserted;
      if (f.size(AtenBuilder::operand(*node, 0), -1).as_integer() != *columns) return std::nullopt;
      part = 0;
    } else if ((node = f.made_by(at, "aten.unsqueeze.default")) != nullptr ||
               (node = f.made_by(at, "aten.squeeze.dims")) != nullptr) {
      // A dim for heads, before the last two.
      if (f.rank(AtenBuilder::operand(*node, 0)) < 2 || f.rank(at) < 2 ||
          f.size(AtenBuilder::operand(*node, 0), -1) != f.size(at, -1) ||
          f.size(AtenBuilder::operand(*node, 0), -2) != f.size(at, -2))
        return std::nullopt;
    } else if ((node = f.made_by(at, "aten.permute.default")) != nullptr) {
      if (is_exchanged || numbers(node->arguments[1]) != std::vector<int64_t>{0, 2, 1}) return std::nullopt;
      is_exchanged = true;
    } else {
      bool is_read = has_function && part == 0 && read_product(f, at, is_exchanged, tokens, *columns, result);
      return is_read ? std::optional(result) : std::nullopt;
    }
    at = AtenBuilder::operand(*node, 0);
  }
  return std::nullopt;
}

ValueId table_of(AtenBuilder& f, const PositionFactors& factors, int64_t count, DType dtype) {
  ValueId positions = f.unsqueeze(f.arange(f.integer(count), DType::kF32, {}), 1);
  ValueId frequencies = f.reshape(factors.frequencies, {f.one(), long_sizes(f, factors.frequencies)[0]});
  ValueId angles = f.mul(positions, f.cast(frequencies, DType::kF32));
  ValueId table = factors.is_sine ? f.sin(angles) : f.cos(angles);
  if (factors.scale != 1) table = f.mul(table, factors.scale);
  return f.cast(table, dtype);
}

}  // namespace argosy
