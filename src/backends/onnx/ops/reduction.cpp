#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// The dims that are reduced; none given means all.
Ints axes_of(const NodeTranslator& e, std::string_view name = "dim") {
  Ints axes = e.has(name) ? e.dims(name, e.rank("self")) : Ints{};
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(e.rank("self")));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

bool keeps_dims(const NodeTranslator& e) { return e.has("keepdim") && e.flag("keepdim"); }

// sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
// mean.dim, prod.dim_int, prod.default, amax and amin alike
void emit_reduction(const NodeTranslator& e, const Translation& row) {
  bool counts = row.onnx_op == "ReduceSum" || row.onnx_op == "ReduceProd" || row.onnx_op == "ReduceMean";
  Ref value = e.tensor("self");
  if (counts || kind_of(e.result().dtype) == DTypeKind::kFloat) value = e.cast(value, e.result().dtype);
  e.yield(e.reduce(row.onnx_op, value, axes_of(e), keeps_dims(e)));
}

// any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
void emit_any(const NodeTranslator& e, const Translation&) {
  // Counted, so that a dim without elements gives false.
  Ref value = e.cast(e.cast(e.tensor("self"), DType::kBool), DType::kI64);
  e.yield(e.cast(e.reduce("ReduceSum", value, axes_of(e), keeps_dims(e)), DType::kBool));
}

// max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
void emit_extreme(const NodeTranslator& e, const Translation& row) {
  Ref value = e.tensor("self");
  int64_t axis = e.dim("dim", e.rank("self"));
  bool is_max = row.onnx_op == "ReduceMax";
  Ref index =
      e.node(is_max ? "ArgMax" : "ArgMin", {value}, {{"axis", axis}, {"keepdims", int64_t{keeps_dims(e) ? 1 : 0}}});
  e.yield(Refs{e.reduce(row.onnx_op, value, {axis}, keeps_dims(e)), index});
}

// argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
void emit_arg_extreme(const NodeTranslator& e, const Translation& row) {
  Ref value = e.tensor("self");
  if (e.has("dim")) {
    return e.yield(e.node(row.onnx_op, {value},
                          {{"axis", e.dim("dim", e.rank("self"))}, {"keepdims", int64_t{keeps_dims(e) ? 1 : 0}}}));
  }
  Ref index =
      e.node(row.onnx_op, {e.node("Reshape", {value, e.ints({-1})})}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
  e.yield(keeps_dims(e) ? e.node("Reshape", {index, e.sizes(e.result().shape)}) : index);
}

// softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor, log_softmax alike
void emit_softmax(const NodeTranslator& e, const Translation& row) {
  e.yield(e.node(row.onnx_op, {e.tensor("self")}, {{"axis", e.dim("dim", e.rank("self"))}}));
}

// cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
void emit_cumsum(const NodeTranslator& e, const Translation&) {
  Ref value = e.cast(e.tensor("self"), e.result().dtype);
  e.yield(e.node("CumSum", {value, e.builder().integer(e.dim("dim", e.rank("self")))}));
}

constexpr Translation kReduction[] = {
    {"aten.sum.dim_IntList", emit_reduction, "ReduceSum"},
    {"aten.mean.dim", emit_reduction, "ReduceMean"},
    {"aten.prod.default", emit_reduction, "ReduceProd"},
    {"aten.prod.dim_int", emit_reduction, "ReduceProd"},
    {"aten.amax.default", emit_reduction, "ReduceMax"},
    {"aten.amin.default", emit_reduction, "ReduceMin"},
    {"aten.any.default", emit_any},
    {"aten.any.dim", emit_any},
    {"aten.any.dims", emit_any},
    {"aten.max.dim", emit_extreme, "ReduceMax"},
    {"aten.min.dim", emit_extreme, "ReduceMin"},
    {"aten.argmax.default", emit_arg_extreme, "ArgMax"},
    {"aten.argmin.default", emit_arg_extreme, "ArgMin"},
    {"aten.softmax.int", emit_softmax, "Softmax"},
    {"aten.log_softmax.int", emit_softmax, "LogSoftmax"},
    {"aten.cumsum.default", emit_cumsum},
};

}  // namespace

std::span<const Translation> reduction_translations() { return kReduction; }

}  // namespace argosy::onnx
