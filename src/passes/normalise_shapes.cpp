#include <algorithm>
#include <numeric>
#include <utility>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

bool keeps_shape(const AtenBuilder& f) { return f.shape(f["self"]) == f.result().shape; }

bool reshape_to(AtenBuilder& f, IntList sizes) {
  return f.become(aten::kReshape, {{"self", f["self"]}, {"shape", std::move(sizes)}});
}

/// Ops that take the sizes as an argument.
bool normalise_view(AtenBuilder& f) {
  if (keeps_shape(f)) return f.replace(f["self"]);
  return f.op() != "aten.reshape.default" && reshape_to(f, std::get<IntList>(f.argument("size").variant()));
}

/// Ops whose result has the dims of the tensor, some of them merged. At most one may not be known.
bool normalise_flatten(AtenBuilder& f) {
  if (keeps_shape(f)) return f.replace(f["self"]);
  const Sizes own = f.shape(f["self"]);
  IntList sizes;
  bool has_open = false;
  for (SymExpr dim : f.result().shape) {
    bool is_open = !dim.as_integer() && std::ranges::find(own, dim) == own.end();
    if (is_open && std::exchange(has_open, true)) return false;
    sizes.push_back(is_open ? IntItem(int64_t{-1}) : f.item(dim, {f["self"]}));
  }
  return reshape_to(f, std::move(sizes));
}

bool normalise_unflatten(AtenBuilder& f) {
  std::optional<size_t> dim = f.dim("dim", f.rank(f["self"]));
  if (!dim) return false;
  const auto& parts = std::get<IntList>(f.argument("sizes").variant());
  IntList sizes;
  for (size_t i = 0; i < f.rank(f["self"]); ++i) {
    if (i == *dim) {
      sizes.insert(sizes.end(), parts.begin(), parts.end());
    } else {
      sizes.push_back(f.item(f["self"], static_cast<int64_t>(i)));
    }
  }
  return reshape_to(f, std::move(sizes));
}

bool normalise_reshape_as(AtenBuilder& f) {
  return keeps_shape(f) ? f.replace(f["self"]) : reshape_to(f, f.items(f["other"]));
}

/// Which dims of size 1 a squeeze removes: those asked for, or all.
bool normalise_squeeze(AtenBuilder& f) {
  if (keeps_shape(f)) return f.replace(f["self"]);
  const Sizes shape = f.shape(f["self"]);
  std::vector<int64_t> asked = f.dims("dim", shape.size()), removed;
  for (size_t i = 0; i < shape.size(); ++i) {
    auto dim = static_cast<int64_t>(i);
    if (std::ranges::count(asked, dim) > 0 && shape[i].as_integer() == 1) removed.push_back(dim);
  }
  if (shape.size() - removed.size() != f.result().shape.size()) return false;
  if (f.op() == "aten.squeeze.dims" && numbers(f.argument("dim")) == removed) return false;
  return f.replace(f.squeeze(f["self"], removed));
}

// ---- order of dims ----

bool permute_to(AtenBuilder& f, const std::vector<int64_t>& order) {
  bool is_it =
      f.op() == "aten.permute.default" && !std::ranges::is_sorted(order) && numbers(f.argument("dims")) == order;
  return !is_it && f.replace(f.permute(f["self"], order));
}

std::vector<int64_t> same_order(const AtenBuilder& f) {
  std::vector<int64_t> order(f.rank(f["self"]));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool normalise_permute(AtenBuilder& f) {
  std::optional<std::vector<int64_t>> dims = numbers(f.argument("dims"));
  return dims && dims->size() == f.rank(f["self"]) && permute_to(f, f.dims("dims", dims->size()));
}

bool normalise_transpose(AtenBuilder& f) {
  std::vector<int64_t> order = same_order(f);
  bool is_by_axis = f.knows("axis0");
  if (order.empty()) return f.replace(f["self"]);
  std::optional<size_t> a = f.dim(is_by_axis ? "axis0" : "dim0", order.size());
  std::optional<size_t> b = f.dim(is_by_axis ? "axis1" : "dim1", order.size());
  if (!a || !b) return false;
  std::swap(order[*a], order[*b]);
  return permute_to(f, order);
}

/// t, mT, adjoint of real numbers: the last two dims change places.
bool normalise_matrix_transpose(AtenBuilder& f) {
  if (kind_of(f.result().dtype) == DTypeKind::kComplex) return false;
  std::vector<int64_t> order = same_order(f);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute_to(f, order);
}

bool normalise_reversed_dims(AtenBuilder& f) {
  std::vector<int64_t> order = same_order(f);
  std::ranges::reverse(order);
  return permute_to(f, order);
}

/// movedim: dims at `source` go to `destination`, the others fill the gaps in order.
bool normalise_movedim(AtenBuilder& f) {
  const size_t rank = f.rank(f["self"]);
  std::vector<int64_t> source = f.dims("source", rank), destination = f.dims("destination", rank);
  std::vector<int64_t> order(rank, -1);
  std::vector<bool> is_moved(rank, false);
  if (source.size() != destination.size()) return false;
  for (size_t i = 0; i < source.size(); ++i) {
    order[static_cast<size_t>(destination[i])] = source[i];
    is_moved[static_cast<size_t>(source[i])] = true;
  }
  size_t next = 0;
  for (int64_t& dim : order) {
    if (dim >= 0) continue;
    while (next < rank && is_moved[next]) ++next;
    dim = static_cast<int64_t>(next++);
  }
  return permute_to(f, order);
}

// ---- broadcasting ----

/// Sizes of expand without -1.
bool normalise_expand(AtenBuilder& f) {
  if (keeps_shape(f)) return f.replace(f["self"]);
  IntList sizes = std::get<IntList>(f.argument("size").variant());
  const size_t rank = f.rank(f["self"]);
  if (sizes.size() != f.result().shape.size() || rank > sizes.size()) return false;
  const size_t added = sizes.size() - rank;
  bool has_open = false;
  for (size_t i = added; i < sizes.size(); ++i) {
    if (sizes[i] != IntItem(int64_t{-1})) continue;
    has_open = true;
    sizes[i] = f.item(f["self"], static_cast<int64_t>(i - added));
  }
  if (!has_open && f.op() == "aten.expand.default") return false;
  return f.become(aten::kExpand, {{"self", f["self"]}, {"size", std::move(sizes)}});
}

bool normalise_expand_as(AtenBuilder& f) { return f.replace(f.expand(f["self"], f.shape(f["other"]), {f["other"]})); }

constexpr RewriteRule kShapesRules[] = {
    {.op = "aten._reshape_alias.default", .name = "normalise-view", .apply = write<normalise_view>},
    {.op = "aten._unsafe_view.default", .name = "normalise-view", .apply = write<normalise_view>},
    {.op = "aten.reshape.default", .name = "normalise-view", .apply = write<normalise_view>},
    {.op = "aten.view.default", .name = "normalise-view", .apply = write<normalise_view>},
    {.op = "aten.atleast_1d.default", .name = "normalise-flatten", .apply = write<normalise_flatten>},
    {.op = "aten.atleast_2d.default", .name = "normalise-flatten", .apply = write<normalise_flatten>},
    {.op = "aten.atleast_3d.default", .name = "normalise-flatten", .apply = write<normalise_flatten>},
    {.op = "aten.flatten.using_ints", .name = "normalise-flatten", .apply = write<normalise_flatten>},
    {.op = "aten.ravel.default", .name = "normalise-flatten", .apply = write<normalise_flatten>},
    {.op = "aten.unflatten.int", .name = "normalise-unflatten", .apply = write<normalise_unflatten>},
    {.op = "aten.reshape_as.default", .name = "normalise-reshape-as", .apply = write<normalise_reshape_as>},
    {.op = "aten.view_as.default", .name = "normalise-reshape-as", .apply = write<normalise_reshape_as>},
    {.op = "aten.squeeze.default", .name = "normalise-squeeze", .apply = write<normalise_squeeze>},
    {.op = "aten.squeeze.dim", .name = "normalise-squeeze", .apply = write<normalise_squeeze>},
    {.op = "aten.squeeze.dims", .name = "normalise-squeeze", .apply = write<normalise_squeeze>},
    {.op = "aten.permute.default", .name = "normalise-permute", .apply = write<normalise_permute>},
    {.op = "aten.swapaxes.default", .name = "normalise-transpose", .apply = write<normalise_transpose>},
    {.op = "aten.swapdims.default", .name = "normalise-transpose", .apply = write<normalise_transpose>},
    {.op = "aten.transpose.int", .name = "normalise-transpose", .apply = write<normalise_transpose>},
    {.op = "aten.adjoint.default", .name = "normalise-transpose", .apply = write<normalise_matrix_transpose>},
    {.op = "aten.mT.default", .name = "normalise-transpose", .apply = write<normalise_matrix_transpose>},
    {.op = "aten.t.default", .name = "normalise-transpose", .apply = write<normalise_matrix_transpose>},
    {.op = "aten.numpy_T.default", .name = "normalise-transpose", .apply = write<normalise_reversed_dims>},
    {.op = "aten.moveaxis.int", .name = "normalise-movedim", .apply = write<normalise_movedim>},
    {.op = "aten.moveaxis.intlist", .name = "normalise-movedim", .apply = write<normalise_movedim>},
    {.op = "aten.movedim.int", .name = "normalise-movedim", .apply = write<normalise_movedim>},
    {.op = "aten.movedim.intlist", .name = "normalise-movedim", .apply = write<normalise_movedim>},
    {.op = "aten.broadcast_to.default", .name = "normalise-expand", .apply = write<normalise_expand>},
    {.op = "aten.expand.default", .name = "normalise-expand", .apply = write<normalise_expand>},
    {.op = "aten.expand_as.default", .name = "normalise-expand", .apply = write<normalise_expand_as>},
};

}  // namespace

std::span<const RewriteRule> shape_rules() { return kShapesRules; }

}  // namespace argosy
