#include <cmath>
#include <limits>
#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// The dims that are reduced; none given means all.
Ints axes_of(const Emitter& e, std::string_view name = "dim") {
  Ints axes = e.has(name) ? e.dims(name, e.rank("self")) : Ints{};
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(e.rank("self")));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (e.rank("self") == 0) axes.clear();
  return axes;
}

bool keeps_dims(const Emitter& e) { return e.has("keepdim") && e.flag("keepdim"); }

// sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
// mean.dim, prod.dim_int, amax, amin, logsumexp and those over all dims alike
void emit_reduction(const Emitter& e, const Translation& row) {
  bool counts = row.onnx_op == "ReduceSum" || row.onnx_op == "ReduceProd" || row.onnx_op == "ReduceMean";
  Ref value = e.tensor("self");
  if (counts || kind_of(e.result().dtype) == DTypeKind::kFloat) value = e.cast(value, e.result().dtype);
  Ints axes = axes_of(e);
  if (axes.empty()) return e.yield(value);
  e.yield(e.reduce(row.onnx_op, value, axes, keeps_dims(e)));
}

// all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor; any alike
void emit_truth(const Emitter& e, const Translation& row) {
  // Counted, so that nothing at all is no true element, and no false one either.
  bool is_all = row.onnx_op == "Not";
  Ref value = e.cast(e.tensor("self"), DType::kBool);
  Ints axes = axes_of(e);
  if (axes.empty()) return e.yield(value);
  if (is_all) value = e.node("Not", {value});
  Ref found = e.cast(e.reduce("ReduceSum", e.cast(value, DType::kI64), axes, keeps_dims(e)), DType::kBool);
  e.yield(is_all ? e.node("Not", {found}) : found);
}

// max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
void emit_extreme(const Emitter& e, const Translation& row) {
  Ref value = e.tensor("self");
  if (e.rank("self") == 0) return e.yield(Refs{value, e.builder().integer(0)});
  int64_t axis = e.dim("dim", e.rank("self"));
  bool is_max = row.onnx_op == "ReduceMax";
  Ref index =
      e.node(is_max ? "ArgMax" : "ArgMin", {value}, {{"axis", axis}, {"keepdims", int64_t{keeps_dims(e) ? 1 : 0}}});
  e.yield(Refs{e.reduce(row.onnx_op, value, {axis}, keeps_dims(e)), index});
}

// aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
void emit_aminmax(const Emitter& e, const Translation&) {
  Ints axes = axes_of(e);
  Ref value = e.tensor("self");
  if (axes.empty()) return e.yield(Refs{value, value});
  e.yield(Refs{e.reduce("ReduceMin", value, axes, keeps_dims(e)), e.reduce("ReduceMax", value, axes, keeps_dims(e))});
}

// argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
void emit_arg_extreme(const Emitter& e, const Translation& row) {
  Ref value = e.tensor("self");
  if (e.rank("self") == 0) return e.yield(e.builder().integer(0));
  if (e.has("dim")) {
    return e.yield(e.node(row.onnx_op, {value},
                          {{"axis", e.dim("dim", e.rank("self"))}, {"keepdims", int64_t{keeps_dims(e) ? 1 : 0}}}));
  }
  Ref index =
      e.node(row.onnx_op, {e.node("Reshape", {value, e.ints({-1})})}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
  e.yield(keeps_dims(e) ? e.node("Reshape", {index, e.sizes(e.result().shape)}) : index);
}

// count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor
void emit_count(const Emitter& e, const Translation&) {
  Ref value = e.cast(e.cast(e.tensor("self"), DType::kBool), DType::kI64);
  Ints axes = axes_of(e);
  e.yield(axes.empty() ? value : e.reduce("ReduceSum", value, axes, false));
}

/// A norm over axes; `order` as torch has it.
Ref norm(const Emitter& e, Ref value, double order, const Ints& axes, bool keeps) {
  Ref size = e.node("Abs", {value});
  if (axes.empty()) return size;
  if (std::isinf(order)) return e.reduce(order > 0 ? "ReduceMax" : "ReduceMin", size, axes, keeps);
  if (order == 1.0) return e.reduce("ReduceSum", size, axes, keeps);
  if (order == 2.0) return e.node("Sqrt", {e.reduce("ReduceSum", e.mul(value, value), axes, keeps)});
  if (order == 0.0) {
    Ref is_other = e.cast(e.cast(value, DType::kBool), e.builder().dtype(value));
    return e.reduce("ReduceSum", is_other, axes, keeps);
  }
  Ref sum = e.reduce("ReduceSum", e.node("Pow", {size, e.like(size, order)}), axes, keeps);
  return e.node("Pow", {sum, e.like(sum, 1.0 / order)});
}

// linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)
// norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
// linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)
void emit_norm(const Emitter& e, const Translation& row) {
  std::string_view name = row.op.starts_with("aten.norm") ? "p" : "ord";
  Ref value = e.cast(e.tensor("self"), e.result().dtype);
  Ints axes = axes_of(e);
  bool is_matrix = row.op == "aten.linalg_norm.default" && e.has(name) && axes.size() == 2;
  if (is_matrix) e.decline("norms of matrices");
  e.yield(norm(e, value, e.has(name) ? e.real(name) : 2.0, axes, keeps_dims(e)));
}

// var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor, std alike;
// only where the number of elements is not known: else they are taken apart before
void emit_variance(const Emitter& e, const Translation& row) {
  Ref value = e.tensor("self");
  Ints axes = axes_of(e);
  DType dtype = e.type("self").dtype;
  Ref mean = e.reduce("ReduceMean", value, axes, true);
  Ref centred = e.sub(value, mean);
  SymExpr count = e.number(1);
  for (int64_t axis : axes) count = e.symbols().mul(count, e.shape("self")[static_cast<size_t>(axis)]);
  double correction = e.has("correction") ? e.real("correction") : 1.0;
  Ref divisor = e.sub(e.cast(e.without_dims(e.size(count)), dtype), e.builder().scalar(correction, dtype));
  divisor = e.node("Max", {divisor, e.builder().scalar(0.0, dtype)});
  Ref variance = e.div(e.reduce("ReduceSum", e.mul(centred, centred), axes, keeps_dims(e)), divisor);
  e.yield(row.onnx_op == "Sqrt" ? e.node("Sqrt", {variance}) : variance);
}

// softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor, log_softmax alike
void emit_softmax(const Emitter& e, const Translation& row) {
  Ref value = e.cast(e.tensor("self"), e.result().dtype);
  if (e.rank("self") == 0) return e.yield(e.like(value, row.onnx_op == "Softmax" ? 1 : 0));
  e.yield(e.node(row.onnx_op, {value}, {{"axis", e.dim("dim", e.rank("self"))}}));
}

// _safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor: 0 where all is -inf
void emit_safe_softmax(const Emitter& e, const Translation&) {
  Ref value = e.cast(e.tensor("self"), e.result().dtype);
  int64_t axis = e.dim("dim", e.rank("self"));
  Ref infinite = e.like(value, -std::numeric_limits<double>::infinity());
  Ref is_blind = e.node("Equal", {e.reduce("ReduceMax", value, {axis}, true), infinite});
  Ref finite = e.node("Where", {is_blind, e.like(value, 0), value});
  Ref softmax = e.node("Softmax", {finite}, {{"axis", axis}});
  e.yield(e.node("Where", {is_blind, e.like(value, 0), softmax}));
}

// cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
void emit_cumsum(const Emitter& e, const Translation&) {
  Ref value = e.cast(e.tensor("self"), e.result().dtype);
  if (e.rank("self") == 0) return e.yield(value);
  e.yield(e.node("CumSum", {value, e.builder().integer(e.dim("dim", e.rank("self")))}));
}

/// What no element of a type is below; or above.
Ref bound_of(const Emitter& e, DType dtype, bool is_upper) {
  if (kind_of(dtype) == DTypeKind::kFloat) {
    double infinity = std::numeric_limits<double>::infinity();
    return e.builder().scalar(is_upper ? infinity : -infinity, dtype);
  }
  if (dtype == DType::kI64) return e.builder().scalar(is_upper ? INT64_MAX : INT64_MIN, dtype);
  if (dtype == DType::kI32) return e.builder().scalar(int64_t{is_upper ? INT32_MAX : INT32_MIN}, dtype);
  e.decline("elements of this type");
}

// cummax(Tensor self, int dim) -> (Tensor values, Tensor indices), cummin alike: of all elements up to each one, which
// takes the square of the dim in memory; of equal ones the last counts
void emit_cumulative_extreme(const Emitter& e, const Translation& row) {
  bool is_max = row.op == "aten.cummax.default";
  Ref value = e.tensor("self");
  if (e.rank("self") == 0) return e.yield(Refs{value, e.builder().integer(0)});
  int64_t axis = e.dim("dim", e.rank("self"));
  Ref count = e.without_dims(e.size(e.shape("self")[static_cast<size_t>(axis)]));
  Ref places = e.count_up(count);
  Ref is_seen = e.node("LessOrEqual", {e.unsqueeze(places, {0}), e.unsqueeze(places, {1})});
  Ints behind;
  for (int64_t i = axis + 1; i < e.rank("self"); ++i) behind.push_back(i + 1 - axis);
  Ref seen = e.node(
      "Where", {e.unsqueeze(is_seen, behind), e.unsqueeze(value, {axis}), bound_of(e, e.type("self").dtype, !is_max)});
  Ref index = e.node(is_max ? "ArgMax" : "ArgMin", {seen},
                     {{"axis", axis + 1}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{1}}});
  e.yield(Refs{e.reduce(is_max ? "ReduceMax" : "ReduceMin", seen, {axis + 1}, false), index});
}

// logcumsumexp(Tensor self, int dim) -> Tensor
void emit_logcumsumexp(const Emitter& e, const Translation&) {
  Ref value = e.tensor("self");
  int64_t axis = e.dim("dim", e.rank("self"));
  Ref largest = e.reduce("ReduceMax", value, {axis}, true);
  Ref sum = e.node("CumSum", {e.node("Exp", {e.sub(value, largest)}), e.builder().integer(axis)});
  e.yield(e.add(e.node("Log", {sum}), largest));
}

constexpr Translation kReduction[] = {
    {"aten.sum.default", emit_reduction, "ReduceSum"},
    {"aten.sum.dim_IntList", emit_reduction, "ReduceSum"},
    {"aten.mean.default", emit_reduction, "ReduceMean"},
    {"aten.mean.dim", emit_reduction, "ReduceMean"},
    {"aten.prod.default", emit_reduction, "ReduceProd"},
    {"aten.prod.dim_int", emit_reduction, "ReduceProd"},
    {"aten.amax.default", emit_reduction, "ReduceMax"},
    {"aten.amin.default", emit_reduction, "ReduceMin"},
    {"aten.max.default", emit_reduction, "ReduceMax"},
    {"aten.min.default", emit_reduction, "ReduceMin"},
    {"aten.logsumexp.default", emit_reduction, "ReduceLogSumExp"},
    {"aten.all.default", emit_truth, "Not"},
    {"aten.all.dim", emit_truth, "Not"},
    {"aten.all.dims", emit_truth, "Not"},
    {"aten.any.default", emit_truth},
    {"aten.any.dim", emit_truth},
    {"aten.any.dims", emit_truth},
    {"aten.max.dim", emit_extreme, "ReduceMax"},
    {"aten.min.dim", emit_extreme, "ReduceMin"},
    {"aten.aminmax.default", emit_aminmax},
    {"aten.argmax.default", emit_arg_extreme, "ArgMax"},
    {"aten.argmin.default", emit_arg_extreme, "ArgMin"},
    {"aten.count_nonzero.default", emit_count},
    {"aten.count_nonzero.dim_IntList", emit_count},
    {"aten.linalg_vector_norm.default", emit_norm},
    {"aten.linalg_norm.default", emit_norm},
    {"aten.norm.Scalar", emit_norm},
    {"aten.norm.ScalarOpt_dim", emit_norm},
    {"aten.var.correction", emit_variance},
    {"aten.std.correction", emit_variance, "Sqrt"},
    {"aten.softmax.int", emit_softmax, "Softmax"},
    {"aten.log_softmax.int", emit_softmax, "LogSoftmax"},
    {"aten._safe_softmax.default", emit_safe_softmax},
    {"aten.cumsum.default", emit_cumsum},
    {"aten.logcumsumexp.default", emit_logcumsumexp},
    {"aten.cummax.default", emit_cumulative_extreme},
    {"aten.cummin.default", emit_cumulative_extreme},
};

}  // namespace

std::span<const Translation> reduction_translations() { return kReduction; }

}  // namespace argosy::onnx
