#include "backends/executorch/xnnpack/op.h"

#include <array>
#include <limits>

#include "base/check.h"
#include "base/text.h"
#include "ir/op_table.h"
#include "passes/aten_builder.h"

namespace argosy::executorch {
namespace {

constexpr size_t kMaxXnnpackRank = 6;

/// The size of an image after strides: a quotient of sizes of at least 1. By its bounds it may be 0, but no convolution
/// would have made that.
bool is_quotient(const SymContext& symbols, SymExpr size, bool& has_quotient) {
  has_quotient = has_quotient || size.kind() == SymKind::kFloorDiv;
  if (size.kind() == SymKind::kSymbol && symbols.range(size).min < 1) return false;
  for (SymExpr operand : size.operands()) {
    if (!is_quotient(symbols, operand, has_quotient)) return false;
  }
  return true;
}

bool is_image_size(const NodeView& view, const TensorType& type, SymExpr size) {
  bool has_quotient = false;
  return type.shape.size() == 4 && is_quotient(view.symbols(), size, has_quotient) && has_quotient;
}

/// Sizes of at least 1 whose bounds are known; so that elements can be counted in 31 bits.
bool has_bounds(const NodeView& view, const TensorType& type) {
  int64_t elements = 1;
  for (SymExpr size : type.shape) {
    if (!size.is_valid()) return false;
    SymRange range = view.symbols().range(size);
    if (range.max > std::numeric_limits<int32_t>::max()) return false;
    if (range.min < 1 && !is_image_size(view, type, size)) return false;
    elements *= range.max;
    if (elements > std::numeric_limits<int32_t>::max()) return false;
  }
  return true;
}

bool fits(const NodeView& view, ValueId value, std::optional<DType>& dtype, bool is_typed) {
  const TensorType* type = view.graph()[value].tensor();
  if (type == nullptr) return false;
  if (!is_typed) {
    if (!computes_in(type->dtype) || (dtype && *dtype != type->dtype)) return false;
    dtype = type->dtype;
  }
  if (type->shape.size() > kMaxXnnpackRank || (type->shape.empty() && !view.is_constant(value))) return false;
  return has_bounds(view, *type);
}

/// Whether XNNPACK can hold every tensor among operands and results; other values must not be arguments.
bool has_types(const NodeView& view, bool is_typed) {
  std::optional<DType> dtype;
  bool is_fit = true;
  for (const Argument& argument : view.node().arguments) {
    for_each_value(argument, [&](ValueId value, uint32_t) {
      bool is_size = view.graph()[value].number() != nullptr && argument.is<IntList>();
      // Sizes in a list are not needed: the type of the result has them.
      if (!is_size && !fits(view, value, dtype, is_typed)) is_fit = false;
    });
  }
  for (ValueId output : view.node().outputs) {
    if (view.graph()[output].uses.empty() && view.node().outputs.size() > 1) continue;
    if (!fits(view, output, dtype, is_typed)) is_fit = false;
  }
  return is_fit && !view.node().outputs.empty();
}

const OpTable<XnnpackOp>& table() {
  static const std::array families = {xnnpack_elementwise(),  xnnpack_products(), xnnpack_shapes(),   xnnpack_norms(),
                                      xnnpack_convolutions(), xnnpack_images(),   xnnpack_quantized()};
  static const OpTable<XnnpackOp> rows(families, OpTable<XnnpackOp>::Duplicates::kRefuse);
  return rows;
}

}  // namespace

NodeView::NodeView(const Program& program, const Component& component, const Graph& graph, NodeId node,
                   const std::vector<bool>* is_written)
    : program_(program),
      component_(component),
      graph_(graph),
      node_(graph[node]),
      schema_(program.schemas[node_.op]),
      is_written_(is_written) {}

const Argument& NodeView::operator[](std::string_view argument) const {
  std::optional<uint32_t> index = schema_.find_argument(argument);
  ARGOSY_CHECK(index && *index < node_.arguments.size(), format("op {} has no argument {}", schema_.name, argument));
  return node_.arguments[*index];
}

std::optional<ValueId> NodeView::tensor(std::string_view argument) const {
  const auto* value = (*this)[argument].get_if<ValueId>();
  if (value == nullptr || graph_[*value].tensor() == nullptr) return std::nullopt;
  return *value;
}

std::optional<double> NodeView::number(std::string_view argument) const {
  const Argument& value = (*this)[argument];
  if (const auto* integer = value.get_if<int64_t>()) return static_cast<double>(*integer);
  if (const auto* real = value.get_if<double>()) return *real;
  if (const auto* flag = value.get_if<bool>()) return *flag ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<int64_t> NodeView::integer(std::string_view argument) const {
  const auto* value = (*this)[argument].get_if<int64_t>();
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<bool> NodeView::boolean(std::string_view argument) const {
  const auto* value = (*this)[argument].get_if<bool>();
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::vector<int64_t>> NodeView::integers(std::string_view argument) const {
  if (std::optional<int64_t> single = integer(argument)) return std::vector<int64_t>{*single};
  return numbers((*this)[argument]);
}

std::optional<size_t> NodeView::dim(std::string_view argument, size_t rank) const {
  std::optional<int64_t> value = integer(argument);
  return value ? wrap_dim(*value, rank) : std::nullopt;
}

const TensorType& NodeView::type(ValueId value) const {
  const TensorType* type = graph_[value].tensor();
  ARGOSY_CHECK(type != nullptr, format("{} is not a tensor", graph_[value].name));
  return *type;
}

std::optional<int64_t> NodeView::size(ValueId value, size_t dim) const {
  SymExpr size = type(value).shape[dim];
  if (std::optional<int64_t> number = size.as_integer()) return number;
  SymRange range = symbols().range(size);
  return range.min == range.max ? std::optional(range.min) : std::nullopt;
}

bool NodeView::is_constant(ValueId value) const {
  WeightId weight = graph_[value].weight;
  return weight.is_valid() && (is_written_ == nullptr || !(*is_written_)[weight.index]);
}

int NodeView::dynamic_dims(ValueId value) const {
  int count = 0;
  for (size_t i = 0; i < rank(value); ++i) count += size(value, i) ? 0 : 1;
  return count;
}

const XnnpackOp* find_xnnpack_op(std::string_view op) {
  std::span<const XnnpackOp* const> rows = table().find(op);
  return rows.empty() ? nullptr : rows[0];
}

const XnnpackOp* find_xnnpack_op(const NodeView& view) {
  const XnnpackOp* row = find_xnnpack_op(view.schema().name);
  return row != nullptr && has_types(view, row->is_typed) && row->supports(view) ? row : nullptr;
}

}  // namespace argosy::executorch
