#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices); stable too: of equal
// elements the first comes first
void emit_sort(const Emitter& e, const Translation&) {
  int64_t rank = e.rank("self");
  if (rank == 0) return e.yield(Refs{e.tensor("self"), e.builder().integer(0)});
  int64_t axis = e.dim("dim", rank);
  e.yield(
      e.builder().node("TopK", {e.tensor("self"), e.size(e.shape("self")[static_cast<size_t>(axis)])}, 2,
                       {{"axis", axis}, {"largest", int64_t{e.flag("descending") ? 1 : 0}}, {"sorted", int64_t{1}}}));
}

// topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
void emit_topk(const Emitter& e, const Translation&) {
  if (e.rank("self") == 0) return e.yield(Refs{e.tensor("self"), e.builder().integer(0)});
  e.yield(e.builder().node("TopK", {e.tensor("self"), e.size("k")}, 2,
                           {{"axis", e.dim("dim", e.rank("self"))},
                            {"largest", int64_t{e.flag("largest") ? 1 : 0}},
                            {"sorted", int64_t{1}}}));
}

// histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor: how many elements fall into each bin
void emit_histc(const Emitter& e, const Translation&) {
  int64_t bins = e.integer("bins");
  double low = e.real("min"), high = e.real("max");
  if (low == high) e.decline("a histogram over the range of its data", "give histc a min and a max");
  Ref value = e.node("Reshape", {e.tensor("self"), e.ints({-1})});
  value = e.cast(value, DType::kF32);
  Ref scaled = e.mul(e.sub(value, e.like(value, low)), e.like(value, static_cast<double>(bins) / (high - low)));
  Ref bin = e.cast(e.node("Floor", {scaled}), DType::kI64);
  bin = e.node("Min", {bin, e.builder().integer(bins - 1)});  // the last bin holds its upper bound
  Ref is_inside = e.node("And", {e.node("GreaterOrEqual", {value, e.like(value, low)}),
                                 e.node("LessOrEqual", {value, e.like(value, high)})});
  bin = e.node("Where", {is_inside, bin, e.builder().integer(-1)});
  Ref all = e.count_up(e.builder().integer(bins));
  Ref is_in = e.cast(e.node("Equal", {e.unsqueeze(bin, {1}), all}), e.result().dtype);
  e.yield(e.reduce("ReduceSum", is_in, {0}, false));
}

// bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor
void emit_bincount(const Emitter& e, const Translation&) {
  if (e.has("weights")) e.decline("weights of a bincount");
  Ref self = e.cast(e.tensor("self"), DType::kI64);
  Ref count = e.node("Max", {e.add(e.reduce("ReduceMax", self, {0}, false), e.builder().integer(1)),
                             e.without_dims(e.size("minlength"))});
  Ref all = e.count_up(count);
  Ref is_in = e.cast(e.node("Equal", {e.unsqueeze(self, {1}), all}), DType::kI64);
  e.yield(e.reduce("ReduceSum", is_in, {0}, false));
}

/// How many boundaries lie before each value: where it would be inserted.
Ref insertion_points(const Emitter& e, Ref values, int64_t rank, Ref boundaries, bool is_right) {
  Ref value = e.unsqueeze(values, {rank});
  Ref is_before = e.node(is_right ? "LessOrEqual" : "Less", {boundaries, value});
  return e.reduce("ReduceSum", e.cast(is_before, DType::kI64), {rank}, false);
}

// bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
void emit_bucketize(const Emitter& e, const Translation&) {
  DType dtype = promote(e.type("self").dtype, e.type("boundaries").dtype).value_or(DType::kF32);
  e.yield(insertion_points(e, e.cast(e.tensor("self"), dtype), e.rank("self"), e.cast(e.tensor("boundaries"), dtype),
                           e.flag("right")));
}

// searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None,
//                     Tensor? sorter=None) -> Tensor
void emit_searchsorted(const Emitter& e, const Translation&) {
  if (e.has("sorter")) e.decline("a sorter");
  bool is_right = e.flag("right") || (e.has("side") && e.text("side") == "right");
  int64_t rank = e.rank("self");
  Ref sequence = e.tensor("sorted_sequence");
  if (e.rank("sorted_sequence") > 1) sequence = e.unsqueeze(sequence, {rank - 1});
  DType dtype = promote(e.type("self").dtype, e.type("sorted_sequence").dtype).value_or(DType::kF32);
  e.yield(insertion_points(e, e.cast(e.tensor("self"), dtype), rank, e.cast(sequence, dtype), is_right));
}

// repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor: index i as often as repeats[i] says
// repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor
void emit_repeat_interleave(const Emitter& e, const Translation& row) {
  bool has_self = row.op == "aten.repeat_interleave.self_Tensor";
  Ref ends = e.node("CumSum", {e.cast(e.tensor("repeats"), DType::kI64), e.builder().integer(0)});
  Ref total = e.node("Gather", {ends, e.builder().integer(-1)}, {{"axis", int64_t{0}}});
  Ref places = e.count_up(total);
  Ref indices = insertion_points(e, places, 1, ends, true);
  if (!has_self) return e.yield(indices);
  Ref self = e.tensor("self");
  if (!e.has("dim")) self = e.node("Reshape", {self, e.ints({-1})});
  e.yield(e.node("Gather", {self, indices}, {{"axis", e.has("dim") ? e.dim("dim", e.rank("self")) : int64_t{0}}}));
}

// isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
void emit_isin(const Emitter& e, const Translation&) {
  int64_t rank = e.rank("elements");
  Ref tests = e.node("Reshape", {e.tensor("test_elements"), e.ints({-1})});
  Ref equal = e.node("Equal", {e.unsqueeze(e.tensor("elements"), {rank}), tests});
  Ref count = e.reduce("ReduceSum", e.cast(equal, DType::kI32), {rank}, false);
  Ref found = e.node("Greater", {count, e.like(count, 0)});
  e.yield(e.flag("invert") ? e.node("Not", {found}) : found);
}

constexpr Translation kOrder[] = {
    {"aten.sort.default", emit_sort},
    {"aten.sort.stable", emit_sort},
    {"aten.topk.default", emit_topk},
    {"aten.histc.default", emit_histc},
    {"aten.bincount.default", emit_bincount},
    {"aten.bucketize.Tensor", emit_bucketize},
    {"aten.searchsorted.Tensor", emit_searchsorted},
    {"aten.repeat_interleave.Tensor", emit_repeat_interleave},
    {"aten.repeat_interleave.self_Tensor", emit_repeat_interleave},
    {"aten.isin.Tensor_Tensor", emit_isin},
};

}  // namespace

std::span<const Translation> order_translations() { return kOrder; }

}  // namespace argosy::onnx
