#include "backends/executorch/xnnpack/builder.h"
#include "base/text.h"

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

Status emit_static_linear(const NodeView& view, XnnpackBuilder& builder) {
  const Weight& weight = view.program()[view.graph()[*view.tensor("weight")].weight];
  const Weight& scales = view.program()[view.graph()[*view.tensor("scales")].weight];
  ValueId value = *view.tensor("input"), result = view.output();
  ARGOSY_TRY(XnnId from, builder.row_major(value));
  ARGOSY_TRY(std::vector<uint32_t> input_dims, builder.dims(value));
  ARGOSY_TRY(std::vector<uint32_t> output_dims, builder.dims(result));
  XnnId input = builder.rounded(from, input_dims, rounding_of(view, "input"));
  std::vector<uint32_t> dims(weight.shape.begin(), weight.shape.end());
  XnnId filter = builder.quantized_constant(
      {XNNDatatype::xnn_datatype_qcint8, weight.source, scales.source, 0, weight.name}, dims);
  XnnId bias = builder.quantized_bias(view);
  XnnId sums = builder.rounded_temporary(output_dims, rounding_of(view, "output"));
  builder.fully_connected(input, filter, bias, sums);
  ARGOSY_TRY(XnnId output, builder.result(result));
  builder.unary(XnnpackBuilder::Kind::XNNConvert, sums, output);
  return {};
}

constexpr XnnpackOp kQuantizedOps[] = {
    {"argosy.quantized_linear.default", Effort::kHeavy, supports_quantized, emit_quantized, true},
    {"argosy.static_linear.default", Effort::kHeavy, supports_static, emit_static_linear, true},
};

}  // namespace

bool supports_static(const NodeView& view) {
  auto is_fixed = [&](const char* argument) {
    std::optional<ValueId> value = view.tensor(argument);
    return !value || view.is_constant(*value);
  };
  return view.type(*view.tensor("input")).dtype == DType::kF32 && view.type(view.output()).dtype == DType::kF32 &&
         is_fixed("weight") && is_fixed("scales") && is_fixed("bias") && is_fixed("bias_scales");
}

Rounding rounding_of(const NodeView& view, std::string_view argument) {
  return {static_cast<float>(*view.number(format("{}_scale", argument))),
          static_cast<int32_t>(*view.integer(format("{}_zero", argument)))};
}

XnnId XnnpackBuilder::quantized_bias(const NodeView& view) {
  std::optional<ValueId> given = view.tensor("bias");
  if (!given) return kNoXnn;
  const Weight& bias = program_[graph_[*given].weight];
  const Weight& scales = program_[graph_[*view.tensor("bias_scales")].weight];
  std::vector<uint32_t> length(bias.shape.begin(), bias.shape.end());
  return quantized_constant({fb_xnnpack::XNNDatatype::xnn_datatype_qcint32, bias.source, scales.source, 0, bias.name},
                            length);
}

std::span<const XnnpackOp> xnnpack_quantized() { return kQuantizedOps; }

}  // namespace argosy::executorch
