#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
// The weight stays [out, in], as checkpoints have it: Gemm multiplies with the transposed one, on two dims.
void emit_linear(const NodeTranslator& e, const Translation&) {
  Ref input = e.tensor("input"), weight = e.tensor("weight"), bias = e.tensor("bias");
  Shape shape = e.shape("input");
  if (e.rank("weight") == 1) {
    Ref product = e.node("MatMul", {input, weight});
    return e.yield(bias.is_valid() ? e.add(product, bias) : product);
  }
  // ONNX Runtime's own op multiplies any number of dims, but adds no bias: another pass over the result takes longer
  // than what Gemm needs.
  if (shape.size() > 2 && !bias.is_valid() && e.takes(RuntimeOp::kFusedMatMul, e.type("input").dtype))
    return e.yield(e.node("com.microsoft.FusedMatMul", {input, weight}, {{"transB", int64_t{1}}}));
  std::vector<SymExpr> rows = {SymExpr(), shape.back()};
  Refs inputs = {shape.size() == 2 ? input : e.reshape(input, shape, rows), weight};
  if (bias.is_valid()) inputs.push_back(bias);
  Ref product = e.node("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
  if (shape.size() == 2) return e.yield(product);
  std::vector<SymExpr> flat = {SymExpr(), e.shape("weight").front()};
  e.yield(e.reshape(product, flat, e.result().shape));
}

// matmul(Tensor self, Tensor other) -> Tensor
void emit_matmul(const NodeTranslator& e, const Translation&) {
  std::string_view right = e.has("other") ? "other" : "mat2";
  e.yield(e.node("MatMul", {e.tensor("self"), e.tensor(right)}));
}

// einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor
void emit_einsum(const NodeTranslator& e, const Translation&) {
  e.yield(e.node("Einsum", e.tensors("tensors"), {{"equation", e.text("equation")}}));
}

// embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)
void emit_embedding(const NodeTranslator& e, const Translation&) {
  e.yield(e.node("Gather", {e.tensor("weight"), e.tensor("indices")}, {{"axis", int64_t{0}}}));
}

constexpr Translation kLinearOps[] = {
    {"aten.linear.default", emit_linear},
    {"aten.matmul.default", emit_matmul},
    {"aten.bmm.default", emit_matmul},
    {"aten.mm.default", emit_matmul},
    {"aten.einsum.default", emit_einsum, {}, "Einsum"},
    {"aten.embedding.default", emit_embedding},
};

}  // namespace

std::span<const Translation> linear_translations() { return kLinearOps; }

}  // namespace argosy::onnx
