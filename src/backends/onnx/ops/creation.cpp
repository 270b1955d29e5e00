#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// full(SymInt[] size, Scalar fill_value, …) -> Tensor
void emit_full(const NodeTranslator& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref value = e.scalar("fill_value", dtype);
  Shape shape = e.result().shape;
  if (shape.empty()) return e.yield(value);
  if (e.constant_number("fill_value")) return e.yield(e.builder().fill(e.sizes(shape), value));
  e.yield(e.node("Expand", {value, e.sizes(shape)}));
}

// arange.start_step(Scalar start, Scalar end, Scalar step=1, …) -> Tensor
void emit_arange(const NodeTranslator& e, const Translation&) {
  DType dtype = e.result().dtype;
  // Computed in the type of the bounds, so that rounding happens where torch rounds.
  e.yield(e.node("Range", {e.scalar("start", dtype), e.scalar("end", dtype), e.scalar("step", dtype)}));
}

/// Random numbers of the result's shape: their distribution is torch's, the numbers are not. ONNX Runtime has these ops
/// as opset 21 has them.
Ref random(const NodeTranslator& e, std::string_view op, Attributes attributes) {
  DType dtype = e.result().dtype, computed = kind_of(dtype) == DTypeKind::kFloat ? dtype : DType::kF32;
  e.builder().limit_opset(21);
  Ref shape = e.builder().fill(e.sizes(e.result().shape), e.builder().scalar(0.0, computed));
  return e.node(op, {shape}, std::move(attributes));
}

// rand(SymInt[] size, …) -> Tensor; randn alike
void emit_random(const NodeTranslator& e, const Translation& row) { e.yield(random(e, row.onnx_op, {})); }

constexpr Translation kCreation[] = {
    {"aten.full.default", emit_full},
    {"aten.arange.start_step", emit_arange},
    {"aten.rand.default", emit_random, "RandomUniformLike"},
    {"aten.randn.default", emit_random, "RandomNormalLike"},
};

}  // namespace

std::span<const Translation> creation_translations() { return kCreation; }

}  // namespace argosy::onnx
