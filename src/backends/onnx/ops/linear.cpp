#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
// The weight stays [out, in], as checkpoints have it: Gemm multiplies with the transposed one, on two dims.
void emit_linear(const Emitter& e, const Translation&) {
  Ref input = e.tensor("input"), weight = e.tensor("weight"), bias = e.tensor("bias");
  Shape shape = e.shape("input");
  if (e.rank("weight") == 1) {
    Ref product = e.node("MatMul", {input, weight});
    return e.yield(bias.is_valid() ? e.add(product, bias) : product);
  }
  std::vector<SymExpr> rows = {SymExpr(), shape.back()};
  Refs inputs = {shape.size() == 2 ? input : e.reshape(input, shape, rows), weight};
  if (bias.is_valid()) inputs.push_back(bias);
  Ref product = e.node("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
  if (shape.size() == 2) return e.yield(product);
  std::vector<SymExpr> flat = {SymExpr(), e.shape("weight").front()};
  e.yield(e.reshape(product, flat, e.result().shape));
}

// matmul(Tensor self, Tensor other) -> Tensor
void emit_matmul(const Emitter& e, const Translation&) {
  std::string_view right = e.has("other") ? "other" : "mat2";
  e.yield(e.node("MatMul", {e.tensor("self"), e.tensor(right)}));
}

// einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor
void emit_einsum(const Emitter& e, const Translation&) {
  e.yield(e.node("Einsum", e.tensors("tensors"), {{"equation", e.text("equation")}}));
}

// cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor: distances of all pairs of rows
void emit_cdist(const Emitter& e, const Translation&) {
  constexpr int64_t kFewRows = 25;  // up to here torch takes differences, beyond a product
  int64_t rank = e.rank("x1");
  double order = e.real("p");
  Ref a = e.tensor("x1"), b = e.tensor("x2");
  auto rows = e.shape("x2")[static_cast<size_t>(rank) - 2].as_integer();
  if (order == 2.0 && rows && *rows > kFewRows) {
    Ref other = e.transpose_last(b, rank);
    Ref squares = e.add(e.reduce("ReduceSum", e.mul(a, a), {rank - 1}, true),
                        e.reduce("ReduceSum", e.mul(other, other), {rank - 2}, true));
    Ref product = e.node("MatMul", {a, other});
    Ref distance = e.sub(squares, e.mul(product, e.like(product, 2)));
    return e.yield(e.node("Sqrt", {e.node("Max", {distance, e.like(distance, 0)})}));
  }
  Ref size = e.node("Abs", {e.sub(e.unsqueeze(a, {rank - 1}), e.unsqueeze(b, {rank - 2}))});
  if (order == 1.0) return e.yield(e.reduce("ReduceSum", size, {rank}, false));
  if (order == 2.0) return e.yield(e.node("Sqrt", {e.reduce("ReduceSum", e.mul(size, size), {rank}, false)}));
  e.decline("distances of order other than 1 and 2");
}

// embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)
void emit_embedding(const Emitter& e, const Translation&) {
  e.yield(e.node("Gather", {e.tensor("weight"), e.tensor("indices")}, {{"axis", int64_t{0}}}));
}

constexpr Translation kLinear[] = {
    {"aten.linear.default", emit_linear},
    {"aten.matmul.default", emit_matmul},
    {"aten.bmm.default", emit_matmul},
    {"aten.mm.default", emit_matmul},
    {"aten.cdist.default", emit_cdist},
    {"aten._cdist_forward.default", emit_cdist},
    {"aten.einsum.default", emit_einsum, {}, "Einsum"},
    {"aten.embedding.default", emit_embedding},
};

}  // namespace

std::span<const Translation> linear_translations() { return kLinear; }

}  // namespace argosy::onnx
