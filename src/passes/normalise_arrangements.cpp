#include <algorithm>
#include <numeric>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

constexpr Synonym kArrangementsSynonyms[] = {
    {"aten._adaptive_avg_pool2d.default", aten::kAdaptiveAvgPool2d},
    {"aten.argwhere.default", aten::kNonzero},
    {"aten.row_stack.default", aten::kVstack},
};

constexpr auto kArrangementsSynonymRules = synonym_rules(kArrangementsSynonyms);

// ---- stacking ----

bool join(AtenBuilder& f, ValueList tensors, int64_t dim) {
  return f.become(aten::kCat, {{"tensors", std::move(tensors)}, {"dim", dim}});
}

bool decompose_hstack(AtenBuilder& f) {
  const ValueList& tensors = f.tensors("tensors");
  if (std::ranges::any_of(tensors, [&](ValueId tensor) { return f.rank(tensor) == 0; })) return false;
  return join(f, tensors, f.result().shape.size() == 1 ? 0 : 1);
}

/// Tensors with dims of size 1 added in front or behind, until they have two.
bool decompose_vstack(AtenBuilder& f) {
  bool is_by_row = f.op() == "aten.vstack.default";
  ValueList tensors = f.tensors("tensors");
  for (ValueId& tensor : tensors) {
    while (f.rank(tensor) < 2) tensor = f.unsqueeze(tensor, is_by_row ? 0 : -1);
  }
  return join(f, std::move(tensors), is_by_row ? 0 : 1);
}

/// Each tensor in the shape of the results; a size comes from a tensor that has it.
bool decompose_broadcast(AtenBuilder& f) {
  const ValueList& tensors = f.tensors("tensors");
  if (tensors.size() != f.output_count()) return false;
  std::vector<ValueId> wide;
  for (ValueId tensor : tensors) wide.push_back(f.expand(tensor, f.result().shape, tensors));
  return f.replace(wide);
}

// ---- turning ----

ValueId flipped(AtenBuilder& f, const std::vector<int64_t>& dims) {
  ValueId self = f["self"];
  return f.node(aten::kFlip, {{"self", self}, {"dims", to_list(dims)}}, f.dtype(self), f.shape(self));
}

bool decompose_flip(AtenBuilder& f) { return f.replace(flipped(f, {f.op() == "aten.fliplr.default" ? 1 : 0})); }

bool decompose_rotation(AtenBuilder& f) {
  std::vector<int64_t> dims = f.dims("dims", f.rank(f["self"]));
  std::optional<int64_t> k = f.integer("k");
  if (dims.size() != 2 || !k) return false;
  int64_t turns = ((*k % 4) + 4) % 4;
  if (turns == 0) return f.replace(f["self"]);
  if (turns == 2) return f.replace(flipped(f, dims));
  return f.replace(f.transpose(flipped(f, {dims[turns == 1 ? 1 : 0]}), dims[0], dims[1]));
}

/// One channel of each group in turn.
bool decompose_channel_shuffle(AtenBuilder& f) {
  ValueId self = f["self"];
  std::optional<int64_t> groups = f.integer("groups");
  std::optional<int64_t> channels = f.rank(self) > 1 ? f.size(self, 1).as_integer() : std::nullopt;
  if (!groups || !channels || *groups <= 0) return false;
  const Sizes shape = f.shape(self);
  Sizes split = shape;
  split[1] = f.integer(*groups);
  split.insert(split.begin() + 2, f.integer(*channels / *groups));
  return f.replace(f.reshape(f.transpose(f.reshape(self, split), 1, 2), shape, {self}));
}

// ---- diagonals ----

bool decompose_diag(AtenBuilder& f) {
  size_t rank = f.rank(f["self"]);
  if (rank != 1 && rank != 2) return false;
  return f.become(rank == 1 ? aten::kDiagEmbed : aten::kDiagonal,
                  {{"self", f["self"]}, {"offset", f.argument("diagonal")}});
}

/// A diagonal, written into zeros.
bool decompose_diag_embed(AtenBuilder& f) {
  ValueId self = f["self"];
  const TensorType result = f.result();
  const size_t rank = result.shape.size();
  std::optional<size_t> a = f.dim("dim1", rank), b = f.dim("dim2", rank);
  if (!a || !b || f.rank(self) + 1 != rank) return false;
  Sizes shape(f.shape(self).begin(), f.shape(self).end() - 1);
  // Both dims have the length of the diagonal plus its distance from the main diagonal.
  bool is_known = result.shape[*a].as_integer() && result.shape[*b].as_integer();
  if (!is_known && f.integer("offset") != 0) return false;
  for (size_t dim : {std::min(*a, *b), std::max(*a, *b)}) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), is_known ? result.shape[dim] : f.size(self, -1));
  }
  ValueId zeros = f.full(shape, int64_t{0}, result.dtype, {self});
  return f.become(aten::kDiagonalScatter, {{"self", zeros},
                                           {"src", self},
                                           {"offset", f.argument("offset")},
                                           {"dim1", static_cast<int64_t>(*a)},
                                           {"dim2", static_cast<int64_t>(*b)}});
}

bool decompose_trace(AtenBuilder& f) {
  ValueId self = f["self"];
  if (f.rank(self) != 2) return false;
  SymExpr length = f.symbols().min(f.size(self, 0), f.size(self, 1));
  return f.become(aten::kSum, {{"self", f.node(aten::kDiagonal, {{"self", self}}, f.dtype(self), {length})}});
}

// ---- along a dim ----

/// Differences of neighbours.
bool decompose_diff(AtenBuilder& f) {
  const TensorType result = f.result();
  std::optional<size_t> dim = f.dim("dim", result.shape.size());
  if (!dim || f.integer("n") != 1 || f.has("prepend") || f.has("append")) return false;
  if (result.dtype == DType::kBool) return false;  // whether they differ, which is no difference of numbers
  auto axis = static_cast<int64_t>(*dim);
  ValueId later = f.slice_between(f["self"], axis, int64_t{1}, None{}, result.shape[*dim]);
  return f.replace(f.sub(later, f.slice_between(f["self"], axis, int64_t{0}, int64_t{-1}, result.shape[*dim])));
}

/// gather, where indices and tensor agree in all dims but the one that is looked along.
bool decompose_take_along(AtenBuilder& f) {
  ValueId self = f["self"], indices = f["indices"];
  std::optional<size_t> dim = f.dim("dim", f.rank(self));
  if (!dim || f.rank(self) != f.rank(indices)) return false;
  for (size_t i = 0; i < f.rank(self); ++i) {
    if (i != *dim && f.shape(self)[i] != f.shape(indices)[i]) return false;
  }
  return f.become(aten::kGather, {{"self", self}, {"dim", static_cast<int64_t>(*dim)}, {"index", indices}});
}

/// The mean or sum of squared differences, or each of them.
bool decompose_mse(AtenBuilder& f) {
  constexpr int64_t kEach = 0, kMean = 1;
  std::optional<int64_t> reduction = f.integer("reduction");
  if (!reduction || f.shape(f["self"]) != f.shape(f["target"])) return false;
  ValueId difference = f.sub(f["self"], f["target"]);
  ValueId loss = f.mul(difference, difference);
  if (*reduction == kEach) return f.replace(loss);
  std::vector<int64_t> dims(f.rank(loss));
  std::iota(dims.begin(), dims.end(), 0);
  return f.replace(*reduction == kMean ? f.mean(loss, dims, false) : f.sum(loss, dims, false));
}

constexpr RewriteRule kArrangementsRules[] = {
    {.op = "aten.broadcast_tensors.default", .name = "decompose-broadcast", .apply = write<decompose_broadcast>},
    {.op = "aten.channel_shuffle.default", .name = "decompose-shuffle", .apply = write<decompose_channel_shuffle>},
    {.op = "aten.column_stack.default", .name = "decompose-stack", .apply = write<decompose_vstack>},
    {.op = "aten.diag.default", .name = "decompose-diag", .apply = write<decompose_diag>},
    {.op = "aten.diag_embed.default", .name = "decompose-diag", .apply = write<decompose_diag_embed>},
    {.op = "aten.diff.default", .name = "decompose-diff", .apply = write<decompose_diff>},
    {.op = "aten.fliplr.default", .name = "decompose-flip", .apply = write<decompose_flip>},
    {.op = "aten.flipud.default", .name = "decompose-flip", .apply = write<decompose_flip>},
    {.op = "aten.hstack.default", .name = "decompose-stack", .apply = write<decompose_hstack>},
    {.op = "aten.mse_loss.default", .name = "decompose-loss", .apply = write<decompose_mse>},
    {.op = "aten.rot90.default", .name = "decompose-rotation", .apply = write<decompose_rotation>},
    {.op = "aten.take_along_dim.default", .name = "decompose-take-along", .apply = write<decompose_take_along>},
    {.op = "aten.trace.default", .name = "decompose-trace", .apply = write<decompose_trace>},
    {.op = "aten.vstack.default", .name = "decompose-stack", .apply = write<decompose_vstack>},
};

}  // namespace

std::span<const RewriteRule> arrangement_rules() { return kArrangementsRules; }
std::span<const RewriteRule> arrangement_synonyms() { return kArrangementsSynonymRules; }

}  // namespace argosy
