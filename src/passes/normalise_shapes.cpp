#include <algorithm>
#include <numeric>

#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// Sizes of a result whose dims are those of `self`, but for at most one; nullopt: there are more.
Result<std::optional<IntList>> sizes_by_dims(Emitter& emit, ValueId self, const TensorType& result) {
  const std::vector<SymExpr> own = emit.type(self).shape;
  IntList sizes;
  bool has_open = false;
  for (SymExpr dim : result.shape) {
    auto found = std::ranges::find(own, dim);
    if (auto number = dim.as_integer()) {
      sizes.emplace_back(*number);
    } else if (found != own.end()) {
      ARGOSY_TRY(IntItem size, emit.size(self, found - own.begin()));
      sizes.push_back(size);
    } else if (!has_open) {
      sizes.emplace_back(int64_t{-1});
      has_open = true;
    } else {
      return std::optional<IntList>();
    }
  }
  return std::optional(std::move(sizes));
}

Result<bool> reshape_to(Match& match, IntList sizes) {
  ARGOSY_TRY(ValueId result,
             match.emit(aten::kReshape, {{"self", match.tensor("self")}, {"shape", std::move(sizes)}}, match.result()));
  return match.replace(result);
}

bool keeps_shape(const Match& match) { return match.emit.type(match.tensor("self")).shape == match.result().shape; }

/// Ops that are told the sizes.
Result<bool> normalise_view(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (keeps_shape(match)) return match.replace(match.tensor("self"));
  if (match.schema().name == "aten.reshape.default") return false;
  return reshape_to(match, std::get<IntList>(match["size"].variant()));
}

/// Ops whose result has the dims of the tensor, some of them merged.
Result<bool> normalise_flatten(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (keeps_shape(match)) return match.replace(match.tensor("self"));
  ARGOSY_TRY(std::optional<IntList> sizes, sizes_by_dims(match.emit, match.tensor("self"), match.result()));
  return sizes ? reshape_to(match, *std::move(sizes)) : Result<bool>(false);
}

Result<bool> normalise_unflatten(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  const size_t rank = match.emit.type(self).shape.size();
  std::optional<size_t> dim = match.dim("dim", rank);
  if (!dim) return false;
  IntList sizes;
  for (size_t i = 0; i < rank; ++i) {
    if (i == *dim) {
      const auto& parts = std::get<IntList>(match["sizes"].variant());
      sizes.insert(sizes.end(), parts.begin(), parts.end());
      continue;
    }
    ARGOSY_TRY(IntItem size, match.emit.size(self, static_cast<int64_t>(i)));
    sizes.push_back(size);
  }
  return reshape_to(match, std::move(sizes));
}

Result<bool> normalise_reshape_as(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (keeps_shape(match)) return match.replace(match.tensor("self"));
  ARGOSY_TRY(IntList sizes, sizes_of(match.emit, match.tensor("other")));
  return reshape_to(match, std::move(sizes));
}

/// Which dims of size 1 a squeeze removes: those asked for, or all.
Result<bool> normalise_squeeze(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const std::vector<SymExpr> shape = match.emit.type(match.tensor("self")).shape;
  std::vector<bool> is_asked(shape.size(), !match.has("dim"));
  if (match.has("dim") && !shape.empty()) {
    std::vector<int64_t> dims;
    if (auto dim = match.integer("dim")) dims = {*dim};
    if (auto list = numbers(match["dim"])) dims = *list;
    for (int64_t dim : dims) {
      std::optional<size_t> index = wrap_dim(dim, shape.size());
      if (!index) return fail(ErrorCode::kInvalidInput, "squeeze of a dim that the tensor lacks");
      is_asked[*index] = true;
    }
  }
  std::vector<int64_t> removed;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (is_asked[i] && shape[i].as_integer() == 1) removed.push_back(static_cast<int64_t>(i));
  }
  if (shape.size() - removed.size() != match.result().shape.size()) return false;
  if (removed.empty()) return match.replace(match.tensor("self"));
  if (match.schema().name == "aten.squeeze.dims" && numbers(match["dim"]) == removed) return false;
  ARGOSY_TRY(ValueId result,
             match.emit(aten::kSqueeze, {{"self", match.tensor("self")}, {"dim", to_list(removed)}}, match.result()));
  return match.replace(result);
}

// ---- order of dims ----

Result<bool> permute_to(Match& match, const std::vector<int64_t>& order) {
  ValueId self = match.tensor("self");
  if (std::ranges::is_sorted(order)) return match.replace(self);
  if (match.schema().name == "aten.permute.default" && numbers(match["dims"]) == order) return false;
  ARGOSY_TRY(ValueId result, match.emit(aten::kPermute, {{"self", self}, {"dims", to_list(order)}}, match.result()));
  return match.replace(result);
}

std::vector<int64_t> same_order(const Match& match) {
  std::vector<int64_t> order(match.emit.type(match.tensor("self")).shape.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Result<bool> normalise_permute(RuleContext& context, const RewriteRule&) {
  Match match(context);
  std::vector<int64_t> order = same_order(match);
  std::optional<std::vector<int64_t>> dims = numbers(match["dims"]);
  if (!dims || dims->size() != order.size()) return false;
  for (size_t i = 0; i < order.size(); ++i) {
    std::optional<size_t> dim = wrap_dim((*dims)[i], order.size());
    if (!dim) return fail(ErrorCode::kInvalidInput, "an order of dims that the tensor lacks");
    order[i] = static_cast<int64_t>(*dim);
  }
  return permute_to(match, order);
}

Result<bool> normalise_transpose(RuleContext& context, const RewriteRule&) {
  Match match(context);
  std::vector<int64_t> order = same_order(match);
  bool is_by_axis = match.has("axis0");
  if (order.empty()) return match.replace(match.tensor("self"));
  std::optional<size_t> a = match.dim(is_by_axis ? "axis0" : "dim0", order.size());
  std::optional<size_t> b = match.dim(is_by_axis ? "axis1" : "dim1", order.size());
  if (!a || !b) return false;
  std::swap(order[*a], order[*b]);
  return permute_to(match, order);
}

/// t, mT, adjoint of real numbers: the last two dims change places.
Result<bool> normalise_matrix_transpose(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (kind_of(match.result().dtype) == DTypeKind::kComplex) return false;
  std::vector<int64_t> order = same_order(match);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute_to(match, order);
}

Result<bool> normalise_reversed_dims(RuleContext& context, const RewriteRule&) {
  Match match(context);
  std::vector<int64_t> order = same_order(match);
  std::ranges::reverse(order);
  return permute_to(match, order);
}

/// movedim: dims at `source` go to `destination`, the others fill the gaps in order.
Result<bool> normalise_movedim(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const size_t rank = match.emit.type(match.tensor("self")).shape.size();
  auto dims = [&](std::string_view name) {
    if (auto number = match.integer(name)) return std::vector<int64_t>{*number};
    return numbers(match[name]).value_or(std::vector<int64_t>{});
  };
  std::vector<int64_t> source = dims("source"), destination = dims("destination");
  std::vector<int64_t> order(rank, -1);
  std::vector<bool> is_moved(rank, false);
  if (source.size() != destination.size()) return false;
  for (size_t i = 0; i < source.size(); ++i) {
    std::optional<size_t> from = wrap_dim(source[i], rank), to = wrap_dim(destination[i], rank);
    if (!from || !to) return fail(ErrorCode::kInvalidInput, "movedim of a dim that the tensor lacks");
    order[*to] = static_cast<int64_t>(*from);
    is_moved[*from] = true;
  }
  size_t next = 0;
  for (int64_t& dim : order) {
    if (dim >= 0) continue;
    while (next < rank && is_moved[next]) ++next;
    dim = static_cast<int64_t>(next++);
  }
  return permute_to(match, order);
}

// ---- broadcasting ----

Result<bool> expand_to(Match& match, IntList sizes) {
  ARGOSY_TRY(ValueId result,
             match.emit(aten::kExpand, {{"self", match.tensor("self")}, {"size", std::move(sizes)}}, match.result()));
  return match.replace(result);
}

/// Sizes of expand without -1.
Result<bool> normalise_expand(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (keeps_shape(match)) return match.replace(match.tensor("self"));
  IntList sizes = std::get<IntList>(match["size"].variant());
  const TensorType result = match.result();
  const size_t rank = match.emit.type(match.tensor("self")).shape.size();
  if (sizes.size() != result.shape.size() || rank > sizes.size()) return false;
  const size_t added = sizes.size() - rank;
  bool has_open = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != IntItem(int64_t{-1}) || i < added) continue;
    has_open = true;
    ARGOSY_TRY(sizes[i], match.emit.size(match.tensor("self"), static_cast<int64_t>(i - added)));
  }
  if (!has_open && match.schema().name == "aten.expand.default") return false;
  return expand_to(match, std::move(sizes));
}

Result<bool> normalise_expand_as(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (keeps_shape(match)) return match.replace(match.tensor("self"));
  ARGOSY_TRY(IntList sizes, sizes_of(match.emit, match.tensor("other")));
  return expand_to(match, std::move(sizes));
}

constexpr RewriteRule kRules[] = {
    {.op = "aten._reshape_alias.default", .name = "normalise-view", .apply = normalise_view},
    {.op = "aten._unsafe_view.default", .name = "normalise-view", .apply = normalise_view},
    {.op = "aten.reshape.default", .name = "normalise-view", .apply = normalise_view},
    {.op = "aten.view.default", .name = "normalise-view", .apply = normalise_view},
    {.op = "aten.atleast_1d.default", .name = "normalise-flatten", .apply = normalise_flatten},
    {.op = "aten.atleast_2d.default", .name = "normalise-flatten", .apply = normalise_flatten},
    {.op = "aten.atleast_3d.default", .name = "normalise-flatten", .apply = normalise_flatten},
    {.op = "aten.flatten.using_ints", .name = "normalise-flatten", .apply = normalise_flatten},
    {.op = "aten.ravel.default", .name = "normalise-flatten", .apply = normalise_flatten},
    {.op = "aten.unflatten.int", .name = "normalise-unflatten", .apply = normalise_unflatten},
    {.op = "aten.reshape_as.default", .name = "normalise-reshape-as", .apply = normalise_reshape_as},
    {.op = "aten.view_as.default", .name = "normalise-reshape-as", .apply = normalise_reshape_as},
    {.op = "aten.squeeze.default", .name = "normalise-squeeze", .apply = normalise_squeeze},
    {.op = "aten.squeeze.dim", .name = "normalise-squeeze", .apply = normalise_squeeze},
    {.op = "aten.squeeze.dims", .name = "normalise-squeeze", .apply = normalise_squeeze},
    {.op = "aten.permute.default", .name = "normalise-permute", .apply = normalise_permute},
    {.op = "aten.swapaxes.default", .name = "normalise-transpose", .apply = normalise_transpose},
    {.op = "aten.swapdims.default", .name = "normalise-transpose", .apply = normalise_transpose},
    {.op = "aten.transpose.int", .name = "normalise-transpose", .apply = normalise_transpose},
    {.op = "aten.adjoint.default", .name = "normalise-transpose", .apply = normalise_matrix_transpose},
    {.op = "aten.mT.default", .name = "normalise-transpose", .apply = normalise_matrix_transpose},
    {.op = "aten.t.default", .name = "normalise-transpose", .apply = normalise_matrix_transpose},
    {.op = "aten.numpy_T.default", .name = "normalise-transpose", .apply = normalise_reversed_dims},
    {.op = "aten.moveaxis.int", .name = "normalise-movedim", .apply = normalise_movedim},
    {.op = "aten.moveaxis.intlist", .name = "normalise-movedim", .apply = normalise_movedim},
    {.op = "aten.movedim.int", .name = "normalise-movedim", .apply = normalise_movedim},
    {.op = "aten.movedim.intlist", .name = "normalise-movedim", .apply = normalise_movedim},
    {.op = "aten.broadcast_to.default", .name = "normalise-expand", .apply = normalise_expand},
    {.op = "aten.expand.default", .name = "normalise-expand", .apply = normalise_expand},
    {.op = "aten.expand_as.default", .name = "normalise-expand", .apply = normalise_expand_as},
};

}  // namespace

std::span<const RewriteRule> shape_rules() { return kRules; }

}  // namespace argosy
