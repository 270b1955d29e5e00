#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using fb_xnnpack::XNNDatatype;

bool has_dynamic_rows(const NodeView& view) {
  return std::get<std::string>(view["encoding"].variant()).starts_with("8da");
}

bool supports_quantized(const NodeView& view) {
  ValueId input = *view.tensor("input");
  std::optional<ValueId> bias = view.tensor("bias");
  DType dtype = view.type(input).dtype;
  // Layers in which only weights are quantised exist for f32 only.
  return computes_in(dtype) && view.type(view.output()).dtype == dtype &&
         (dtype == DType::kF32 || has_dynamic_rows(view)) && view.is_constant(*view.tensor("weight")) &&
         view.is_constant(*view.tensor("scales")) &&
         (!bias || (view.is_constant(*bias) && view.rank(*bias) == 1 &&
                    view.size(*bias, 0) == view.size(*view.tensor("weight"), 0)));
}

Status emit_quantized(const NodeView& view, XnnpackBuilder& builder) {
  const Weight& weight = view.program()[view.graph()[*view.tensor("weight")].weight];
  const Weight& scales = view.program()[view.graph()[*view.tensor("scales")].weight];
  int64_t group_size = *view.integer("group_size");
  bool is_nibbles = weight.dtype == DType::kU4;
  XNNDatatype datatype = !is_nibbles      ? XNNDatatype::xnn_datatype_qcint8
                         : group_size > 0 ? XNNDatatype::xnn_datatype_qbint4
                                          : XNNDatatype::xnn_datatype_qcint4;
  ValueId value = *view.tensor("input");
  ARGOSY_TRY(XnnId input, has_dynamic_rows(view) ? builder.quantized_rows(value) : builder.row_major(value));
  std::vector<uint32_t> dims(weight.shape.begin(), weight.shape.end());
  XnnId filter = builder.quantized_constant({datatype, weight.source, scales.source, group_size, weight.name}, dims);
  std::optional<ValueId> bias = view.tensor("bias");
  if (!bias) {
    ARGOSY_TRY(XnnId output, builder.result(view.output()));
    builder.fully_connected(input, filter, kNoXnn, output);
    return {};
  }
  // Sums are f32 whatever the result is.
  const Weight& given = view.program()[view.graph()[*bias].weight];
  ARGOSY_TRY(TensorSourcePtr source, converted(given.source, DType::kF32));
  std::vector<uint32_t> length(given.shape.begin(), given.shape.end());
  if (has_dynamic_rows(view)) {
    ARGOSY_TRY(XnnId added, builder.packed_constant(given.name, std::move(source), length));
    ARGOSY_TRY(XnnId output, builder.result(view.output()));
    builder.fully_connected(input, filter, added, output);
    return {};
  }
  // Layers in which only weights are quantised compute (bias + sum) * scale: the bias is added after them.
  ARGOSY_TRY(std::vector<uint32_t> sizes, builder.dims(view.output()));
  XnnId sums = builder.temporary(DType::kF32, sizes);
  builder.fully_connected(input, filter, kNoXnn, sums);
  ARGOSY_TRY(XnnId added, builder.constant(given.name, std::move(source), length));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.binary(XnnpackBuilder::Kind::XNNAdd, sums, added, output);
  return {};
}

constexpr XnnpackOp kQuantizedOps[] = {
    {"argosy.quantized_linear.default", Effort::kHeavy, supports_quantized, emit_quantized, true},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_quantized() { return kQuantizedOps; }

}  // namespace argosy::executorch
