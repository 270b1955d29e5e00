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
    {"onnx.quantized_experts.default", emit_quantized_experts},
    {"onnx.gather_block_quantized.default", emit_gather},
    {"onnx.matmul_nbits.default", emit_matmul_nbits},
};

}  // namespace

std::span<const Translation> quantized_translations() { return kQuantized; }

}  // namespace argosy::onnx
