#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// full(SymInt[] size, Scalar fill_value, …) -> Tensor
void emit_full(const Emitter& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref value = e.scalar("fill_value", dtype);
  Shape shape = e.result().shape;
  if (shape.empty()) return e.yield(value);
  if (e.constant_number("fill_value")) return e.yield(e.builder().fill(e.sizes(shape), value));
  e.yield(e.node("Expand", {value, e.sizes(shape)}));
}

// arange.start_step(Scalar start, Scalar end, Scalar step=1, …) -> Tensor
void emit_arange(const Emitter& e, const Translation&) {
  DType dtype = e.result().dtype;
  // Computed in the type of the bounds, so that rounding happens where torch rounds.
  e.yield(e.node("Range", {e.scalar("start", dtype), e.scalar("end", dtype), e.scalar("step", dtype)}));
}

constexpr Translation kCreation[] = {
    {"aten.full.default", emit_full},
    {"aten.arange.start_step", emit_arange},
};

}  // namespace

std::span<const Translation> creation_translations() { return kCreation; }

}  // namespace argosy::onnx
