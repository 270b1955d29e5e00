#include <algorithm>
#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// view(Tensor(a) self, SymInt[] size) -> Tensor(a), and everything else that keeps the elements and their order
void emit_reshape(const Emitter& e, const Translation&) {
  e.yield(e.reshape(e.tensor("self"), e.shape("self"), e.result().shape));
}

// expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
void emit_expand(const Emitter& e, const Translation&) {
  e.yield(e.expand(e.tensor("self"), e.shape("self"), e.result().shape));
}

// permute(Tensor(a) self, int[] dims) -> Tensor(a)
void emit_permute(const Emitter& e, const Translation&) {
  e.yield(e.transpose(e.tensor("self"), e.dims("dims", e.rank("self"))));
}

// transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
void emit_transpose(const Emitter& e, const Translation&) {
  Ints permutation(static_cast<size_t>(e.rank("self")));
  std::iota(permutation.begin(), permutation.end(), 0);
  if (permutation.empty()) return e.yield(e.tensor("self"));
  std::swap(permutation[static_cast<size_t>(e.dim("dim0", e.rank("self")))],
            permutation[static_cast<size_t>(e.dim("dim1", e.rank("self")))]);
  e.yield(e.transpose(e.tensor("self"), permutation));
}

// unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
void emit_unsqueeze(const Emitter& e, const Translation&) {
  e.yield(e.unsqueeze(e.tensor("self"), {e.dim("dim", e.rank("self") + 1)}));
}

// cat(Tensor[] tensors, int dim=0) -> Tensor
void emit_cat(const Emitter& e, const Translation&) {
  int64_t rank = static_cast<int64_t>(e.result().shape.size());
  int64_t axis = e.dim("dim", rank);
  Refs parts;
  for (ValueId id : e.tensor_ids("tensors")) {
    // torch passes over empty tensors of one dim, whatever the others are.
    const TensorType& type = e.type_of(id);
    if (type.shape.size() == 1 && rank != 1) continue;
    if (type.shape[static_cast<size_t>(axis)].as_integer() == 0) continue;
    parts.push_back(e.cast(e.tensor(id), e.result().dtype));
  }
  if (parts.empty()) parts.push_back(e.tensors("tensors").front());
  e.yield(e.concat(std::move(parts), axis));
}

/// One bound of a slice: i64[1]. None is the end that it stands for.
Ref bound(const Emitter& e, std::string_view name, int64_t otherwise) {
  return e.has(name) ? e.size(name) : e.ints({otherwise});
}

// slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)
// Both clamp bounds and count negative ones from the end.
void emit_slice(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  e.yield(e.slice(e.tensor("self"), axis, bound(e, "start", 0), bound(e, "end", INT64_MAX), e.integer("step")));
}

// select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
void emit_select(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  auto index = e.constant_integer("index");
  Ref at = index ? e.builder().integer(*index) : e.without_dims(e.size("index"));
  e.yield(e.node("Gather", {e.tensor("self"), at}, {{"axis", axis}}));
}

// split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
void emit_split(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  if (e.result_count() == 1) return e.yield(e.tensor("self"));
  e.yield(e.builder().node("Split", {e.tensor("self"), e.sizes("split_sizes")}, e.result_count(), {{"axis", axis}}));
}

// to.dtype(Tensor(a) self, ScalarType dtype, …) -> Tensor(a)
void emit_to(const Emitter& e, const Translation&) { e.yield(e.tensor("self")); }  // yield() casts

constexpr Translation kShape[] = {
    {"aten.view.default", emit_reshape},
    {"aten.reshape.default", emit_reshape},
    {"aten.expand.default", emit_expand},
    {"aten.permute.default", emit_permute},
    {"aten.transpose.int", emit_transpose},
    {"aten.unsqueeze.default", emit_unsqueeze},
    {"aten.cat.default", emit_cat},
    {"aten.slice.Tensor", emit_slice},
    {"aten.select.int", emit_select},
    {"aten.split_with_sizes.default", emit_split},
    {"aten.to.dtype", emit_to},
};

}  // namespace

std::span<const Translation> shape_translations() { return kShape; }

}  // namespace argosy::onnx
