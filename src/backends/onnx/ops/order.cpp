#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices); stable too: of equal
// elements the first comes first
void emit_sort(const NodeTranslator& e, const Translation&) {
  int64_t rank = e.rank("self");
  if (rank == 0) return e.yield(Refs{e.tensor("self"), e.builder().integer(0)});
  int64_t axis = e.dim("dim", rank);
  e.yield(
      e.builder().node("TopK", {e.tensor("self"), e.size(e.shape("self")[static_cast<size_t>(axis)])}, 2,
                       {{"axis", axis}, {"largest", int64_t{e.flag("descending") ? 1 : 0}}, {"sorted", int64_t{1}}}));
}

// topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
void emit_topk(const NodeTranslator& e, const Translation&) {
  if (e.rank("self") == 0) return e.yield(Refs{e.tensor("self"), e.builder().integer(0)});
  e.yield(e.builder().node("TopK", {e.tensor("self"), e.size("k")}, 2,
                           {{"axis", e.dim("dim", e.rank("self"))},
                            {"largest", int64_t{e.flag("largest") ? 1 : 0}},
                            {"sorted", int64_t{1}}}));
}

// _unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor,
//          Tensor)
void emit_unique(const NodeTranslator& e, const Translation&) {
  Refs found = e.builder().node("Unique", {e.tensor("self")}, 4, {{"sorted", int64_t{1}}});
  std::vector<SymExpr> flat = {e.elements(e.shape("self"))};
  e.yield(Refs{found[0], e.reshape(found[2], flat, e.shape("self")), found[3]});
}

constexpr Translation kOrder[] = {
    {"aten.sort.default", emit_sort, {}, "TopK"},
    {"aten.sort.stable", emit_sort, {}, "TopK"},
    {"aten.topk.default", emit_topk},
    {"aten._unique2.default", emit_unique, {}, "Unique"},
};

}  // namespace

std::span<const Translation> order_translations() { return kOrder; }

}  // namespace argosy::onnx
