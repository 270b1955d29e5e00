#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using Kind = XnnpackBuilder::Kind;

bool supports_linear(const NodeView& view) {
  ValueId weight = *view.tensor("weight");
  std::optional<ValueId> bias = view.tensor("bias");
  if (view.rank(weight) != 2) return false;
  return !bias || (view.rank(*bias) == 1 && view.is_constant(*bias) && view.size(weight, 0).has_value() &&
                   view.size(*bias, 0) == view.size(weight, 0));
}

Status emit_linear(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.row_major(*view.tensor("input")));
  ARGOSY_TRY(XnnId weight, builder.packed(*view.tensor("weight")));
  XnnId bias = kNoXnn;
  if (std::optional<ValueId> value = view.tensor("bias")) {
    ARGOSY_TRY(bias, builder.packed(*value));
  }
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.fully_connected(input, weight, bias, output);
  return {};
}

bool supports_product(const NodeView& view) {
  ValueId a = *view.tensor("self"), b = *view.tensor(view.has("other") ? "other" : "mat2");
  return view.rank(a) >= 2 && view.rank(b) >= 2;
}

/// If the value is a deferred swap of the last two dims of another one: that other one.
std::optional<ValueId> before_swap(const NodeView& view, const XnnpackBuilder& builder, ValueId value) {
  NodeId node = builder.deferred(value);
  if (!node.is_valid()) return std::nullopt;
  NodeView swap(view.program(), view.component(), view.graph(), node);
  std::vector<int64_t> dims = *swap.integers("dims");
  for (size_t i = 0; i + 2 < dims.size(); ++i) {
    if (dims[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  if (dims.size() < 2 || dims.back() != static_cast<int64_t>(dims.size()) - 2) return std::nullopt;
  return swap.tensor("self");
}

Status emit_product(const NodeView& view, XnnpackBuilder& builder) {
  ValueId a = *view.tensor("self"), b = *view.tensor(view.has("other") ? "other" : "mat2");
  ARGOSY_TRY(XnnId left, builder.row_major(a));
  if (view.is_constant(b) && view.rank(b) == 2) {
    // A product with a constant is a layer, whose weights are packed once.
    ARGOSY_TRY(XnnId filter, builder.packed(b));
    ARGOSY_TRY(XnnId output, builder.result(view.output()));
    builder.fully_connected(left, filter, kNoXnn, output, kTransposeWeights);
    return {};
  }
  uint32_t flags = 0;
  if (std::optional<ValueId> swapped = before_swap(view, builder, b)) {
    b = *swapped;
    flags = kTransposeWeights;
  }
  ARGOSY_TRY(XnnId right, builder.row_major(b));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.binary(Kind::XNNBatchMatrixMultiply, left, right, output, flags);
  return {};
}

bool supports_addmm(const NodeView& view) {
  ValueId bias = *view.tensor("self"), weight = *view.tensor("mat2");
  if (view.rank(weight) != 2) return false;
  return view.number("beta") == 1.0 && view.number("alpha") == 1.0 && view.is_constant(weight) &&
         view.is_constant(bias) && view.rank(bias) == 1 && view.size(bias, 0) == view.size(weight, 1);
}

Status emit_addmm(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.row_major(*view.tensor("mat1")));
  ARGOSY_TRY(XnnId weight, builder.packed(*view.tensor("mat2")));
  ARGOSY_TRY(XnnId bias, builder.packed(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.fully_connected(input, weight, bias, output, kTransposeWeights);
  return {};
}

using enum Effort;

constexpr XnnpackOp kProductsOps[] = {
    {"aten.addmm.default", kHeavy, supports_addmm, emit_addmm},
    {"aten.bmm.default", kHeavy, supports_product, emit_product},
    {"aten.linear.default", kHeavy, supports_linear, emit_linear},
    {"aten.matmul.default", kHeavy, supports_product, emit_product},
    {"aten.mm.default", kHeavy, supports_product, emit_product},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_products() { return kProductsOps; }

}  // namespace argosy::executorch
