#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// matmul_nbits(Tensor input, Tensor weight, Tensor scales, Tensor? zero_points, Tensor? bias, int width, int bits,
//              int block_size, int accuracy_level) -> Tensor
void emit_matmul_nbits(const NodeTranslator& e, const Translation&) {
  std::optional<int64_t> rows = e.shape("weight").front().as_integer();
  Attributes attributes = {{"K", e.integer("width")},
                           {"N", rows.value_or(0)},
                           {"bits", e.integer("bits")},
                           {"block_size", e.integer("block_size")}};
  if (int64_t level = e.integer("accuracy_level"); level != 0) attributes.push_back({"accuracy_level", level});
  Refs inputs = {e.tensor("input"), e.tensor("weight"), e.tensor("scales")};
  Ref zeros = e.tensor("zero_points"), bias = e.tensor("bias");
  if (zeros.is_valid() || bias.is_valid()) inputs.push_back(zeros);
  if (bias.is_valid()) {
    inputs.push_back({});  // no order of groups
    inputs.push_back(bias);
  }
  e.yield(e.node("com.microsoft.MatMulNBits", std::move(inputs), std::move(attributes)));
}

// matmul_bnb4(Tensor input, Tensor weight, Tensor scales, Tensor? bias, int rows, int width, int block_size) -> Tensor
void emit_matmul_bnb4(const NodeTranslator& e, const Translation&) {
  constexpr int64_t kNormalFloat = 1;  // of quant_type; 0: FP4
  Ref product = e.node("com.microsoft.MatMulBnb4", {e.tensor("input"), e.tensor("weight"), e.tensor("scales")},
                       {{"K", e.integer("width")},
                        {"N", e.integer("rows")},
                        {"block_size", e.integer("block_size")},
                        {"quant_type", kNormalFloat}});
  Ref bias = e.tensor("bias");
  e.yield(bias.is_valid() ? e.add(product, bias) : product);
}

// gather_block_quantized(Tensor weight, Tensor indices, Tensor scales, Tensor? zero_points, int bits, int block_size)
void emit_gather(const NodeTranslator& e, const Translation&) {
  Refs inputs = {e.tensor("weight"), e.tensor("indices"), e.tensor("scales")};
  if (Ref zeros = e.tensor("zero_points"); zeros.is_valid()) inputs.push_back(zeros);
  e.yield(e.node("com.microsoft.GatherBlockQuantized", std::move(inputs),
                 {{"gather_axis", int64_t{0}},
                  {"quantize_axis", int64_t{1}},
                  {"bits", e.integer("bits")},
                  {"block_size", e.integer("block_size")}}));
}

// dynamic_product(Tensor input, Tensor weight, Tensor scales, Tensor? zero_points, Tensor? bias) -> Tensor
void emit_dynamic_product(const NodeTranslator& e, const Translation&) {
  // In the order in which the engine recognises them as one op.
  Refs rounded = e.builder().node("DynamicQuantizeLinear", {e.tensor("input")}, 3);
  Refs inputs = {rounded[0], e.tensor("weight"), rounded[2]};
  if (Ref zeros = e.tensor("zero_points"); zeros.is_valid()) inputs.push_back(zeros);
  Ref sums = e.cast(e.node("MatMulInteger", std::move(inputs)), DType::kF32);
  Ref product = e.mul(sums, e.mul(rounded[1], e.tensor("scales")));
  Ref bias = e.tensor("bias");
  e.yield(bias.is_valid() ? e.add(product, bias) : product);
}

// gather_rows(Tensor weight, Tensor indices, Tensor scales, Tensor? zero_points) -> Tensor
void emit_gather_rows(const NodeTranslator& e, const Translation&) {
  auto rows = [&](std::string_view name) { return e.node("Gather", {e.tensor(name), e.tensor("indices")}); };
  auto column = [&](Ref value) { return e.unsqueeze(value, {-1}); };
  Ref values = e.cast(rows("weight"), DType::kF32);
  if (e.tensor("zero_points").is_valid()) values = e.sub(values, column(e.cast(rows("zero_points"), DType::kF32)));
  e.yield(e.mul(values, column(rows("scales"))));
}

// quantized_experts(Tensor input, Tensor router, Tensor first, Tensor first_scales, Tensor? first_zero_points, …)
void emit_quantized_experts(const NodeTranslator& e, const Translation&) {
  Attributes attributes = experts_attributes(e);
  attributes.push_back({"expert_weight_bits", e.integer("bits")});
  attributes.push_back({"block_size", e.integer("block_size")});
  Refs inputs = {e.tensor("input"),      e.tensor("router"), e.tensor("first"),         e.tensor("first_scales"),
                 e.tensor("first_bias"), e.tensor("second"), e.tensor("second_scales"), e.tensor("second_bias")};
  if (Ref zeros = e.tensor("first_zero_points"); zeros.is_valid()) {
    inputs.resize(11);  // no third product
    inputs.push_back(zeros);
    inputs.push_back(e.tensor("second_zero_points"));
  }
  e.yield(e.node("com.microsoft.QMoE", std::move(inputs), std::move(attributes)));
}

constexpr Translation kQuantized[] = {
    {"onnx.quantized_experts.default", emit_quantized_experts}, {"onnx.gather_block_quantized.default", emit_gather},
    {"onnx.matmul_nbits.default", emit_matmul_nbits},           {"onnx.matmul_bnb4.default", emit_matmul_bnb4},
    {"onnx.dynamic_product.default", emit_dynamic_product},     {"onnx.gather_rows.default", emit_gather_rows},
};

}  // namespace

std::span<const Translation> quantized_translations() { return kQuantized; }

}  // namespace argosy::onnx
