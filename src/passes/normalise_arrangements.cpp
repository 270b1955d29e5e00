#include <algorithm>

#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

constexpr std::string_view kFlip = "aten::flip(Tensor self, int[] dims) -> Tensor";
constexpr std::string_view kDiagonal =
    "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)";
constexpr std::string_view kDiagonalScatter =
    "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor";
constexpr std::string_view kDiagEmbed =
    "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor";
constexpr std::string_view kSum = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor";
constexpr std::string_view kGather =
    "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor";

constexpr Synonym kSynonyms[] = {
    {"aten.argwhere.default", "aten::nonzero(Tensor self) -> Tensor"},
    {"aten.row_stack.default", "aten::vstack(Tensor[] tensors) -> Tensor"},
};

constexpr auto kSynonymRules = synonym_rules(kSynonyms);

// ---- stacking ----

/// The tensor with dims of size 1 added in front or behind, until it has two.
Result<ValueId> as_matrix(Emitter& emit, ValueId tensor, bool is_row) {
  while (emit.type(tensor).shape.size() < 2) {
    TensorType type = emit.type(tensor);
    type.strides.clear();
    auto dim = static_cast<int64_t>(is_row ? 0 : type.shape.size());
    type.shape.insert(type.shape.begin() + dim, emit.number(1));
    ARGOSY_TRY(tensor, emit(aten::kUnsqueeze, {{"self", tensor}, {"dim", dim}}, std::move(type)));
  }
  return tensor;
}

Result<bool> join(Match& match, ValueList tensors, int64_t dim) {
  ARGOSY_TRY(ValueId joined, match.emit(aten::kCat, {{"tensors", std::move(tensors)}, {"dim", dim}}, match.result()));
  return match.replace(joined);
}

Result<bool> decompose_hstack(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueList tensors = std::get<ValueList>(match["tensors"].variant());
  bool is_flat = match.result().shape.size() == 1;
  for (ValueId tensor : tensors) {
    if (match.emit.type(tensor).shape.empty()) return false;
  }
  return join(match, std::move(tensors), is_flat ? 0 : 1);
}

Result<bool> decompose_vstack(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  bool is_by_row = rule.op == "aten.vstack.default";
  ValueList tensors = std::get<ValueList>(match["tensors"].variant());
  for (ValueId& tensor : tensors) {
    ARGOSY_TRY(tensor, as_matrix(match.emit, tensor, is_by_row));
  }
  return join(match, std::move(tensors), is_by_row ? 0 : 1);
}

/// Each tensor in the shape of the results; a size comes from a tensor that has it.
Result<bool> decompose_broadcast(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const ValueList tensors = std::get<ValueList>(match["tensors"].variant());
  const TensorType result = match.result();
  if (tensors.size() != match.output_count()) return false;
  IntList sizes;
  for (size_t i = 0; i < result.shape.size(); ++i) {
    std::optional<IntItem> found;
    for (ValueId tensor : tensors) {
      const std::vector<SymExpr> shape = match.emit.type(tensor).shape;
      size_t from_back = result.shape.size() - i;
      if (found || from_back > shape.size() || shape[shape.size() - from_back] != result.shape[i]) continue;
      ARGOSY_TRY(found, match.emit.size(tensor, static_cast<int64_t>(shape.size() - from_back)));
    }
    if (!found) return false;
    sizes.push_back(*found);
  }
  std::vector<ValueId> wide;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ARGOSY_TRY(ValueId one, match.emit(aten::kExpand, {{"self", tensors[i]}, {"size", sizes}}, match.result(i)));
    wide.push_back(one);
  }
  return match.replace(wide);
}

// ---- turning ----

Result<ValueId> flipped(Match& match, std::vector<int64_t> dims) {
  ValueId self = match.tensor("self");
  TensorType type = match.emit.type(self);
  type.strides.clear();
  return match.emit(kFlip, {{"self", self}, {"dims", to_list(dims)}}, std::move(type));
}

Result<bool> decompose_flip(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  ARGOSY_TRY(ValueId result, flipped(match, {rule.op == "aten.fliplr.default" ? 1 : 0}));
  return match.replace(result);
}

Result<bool> decompose_rotation(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  std::optional<std::vector<int64_t>> dims = numbers(match["dims"]);
  std::optional<int64_t> k = match.integer("k");
  if (!dims || dims->size() != 2 || !k) return false;
  std::optional<size_t> a = wrap_dim((*dims)[0], result.shape.size()), b = wrap_dim((*dims)[1], result.shape.size());
  if (!a || !b) return false;
  auto first = static_cast<int64_t>(*a), second = static_cast<int64_t>(*b);
  int64_t turns = ((*k % 4) + 4) % 4;
  if (turns == 0) return match.replace(match.tensor("self"));
  std::vector<int64_t> order(result.shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[*a], order[*b]);
  std::vector<int64_t> reversed = {first, second};
  if (turns == 1) reversed = {second};
  if (turns == 3) reversed = {first};
  ARGOSY_TRY(ValueId turned, flipped(match, reversed));
  if (turns != 2) {
    ARGOSY_TRY(turned, match.emit(aten::kPermute, {{"self", turned}, {"dims", to_list(order)}}, result));
  }
  return match.replace(turned);
}

/// Channels of groups, one of each by turns.
Result<bool> decompose_channel_shuffle(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  const TensorType result = match.result();
  std::optional<int64_t> groups = match.integer("groups");
  std::optional<int64_t> channels = result.shape.size() > 1 ? result.shape[1].as_integer() : std::nullopt;
  if (!groups || !channels || *groups <= 0) return false;
  ARGOSY_TRY(IntList sizes, sizes_of(match.emit, self));
  IntList split = sizes;
  split[1] = *groups;
  split.insert(split.begin() + 2, *channels / *groups);
  TensorType type{result.dtype, result.shape, {}};
  type.shape[1] = match.emit.number(*groups);
  type.shape.insert(type.shape.begin() + 2, match.emit.number(*channels / *groups));
  ARGOSY_TRY(ValueId parts, match.emit(aten::kReshape, {{"self", self}, {"shape", std::move(split)}}, type));
  std::vector<int64_t> order(type.shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[1], order[2]);
  std::swap(type.shape[1], type.shape[2]);
  ARGOSY_TRY(parts, match.emit(aten::kPermute, {{"self", parts}, {"dims", to_list(order)}}, type));
  ARGOSY_TRY(parts, match.emit(aten::kReshape, {{"self", parts}, {"shape", std::move(sizes)}}, result));
  return match.replace(parts);
}

// ---- diagonals ----

Result<bool> decompose_diag(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  size_t rank = match.emit.type(self).shape.size();
  if (rank != 1 && rank != 2) return false;
  ARGOSY_TRY(ValueId result, match.emit(rank == 1 ? kDiagEmbed : kDiagonal,
                                        {{"self", self}, {"offset", match["diagonal"]}}, match.result()));
  return match.replace(result);
}

/// A diagonal, written into zeros.
Result<bool> decompose_diag_embed(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  const TensorType result = match.result();
  const size_t rank = result.shape.size();
  std::optional<size_t> a = match.dim("dim1", rank), b = match.dim("dim2", rank);
  if (!a || !b || match.emit.type(self).shape.size() + 1 != rank) return false;
  IntList sizes;
  int64_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    bool is_own = i == *a || i == *b;
    if (auto number = result.shape[i].as_integer()) {
      sizes.emplace_back(*number);
    } else if (is_own && match.integer("offset") != 0) {
      return false;
    } else {
      ARGOSY_TRY(IntItem size, match.emit.size(self, is_own ? static_cast<int64_t>(rank) - 2 : next));
      sizes.push_back(size);
    }
    if (!is_own) ++next;
  }
  ARGOSY_TRY(ValueId zeros,
             match.emit(aten::kFull, {{"size", std::move(sizes)}, {"fill_value", int64_t{0}}, {"dtype", result.dtype}},
                        result));
  ARGOSY_TRY(ValueId written, match.emit(kDiagonalScatter,
                                         {{"self", zeros},
                                          {"src", self},
                                          {"offset", match["offset"]},
                                          {"dim1", static_cast<int64_t>(*a)},
                                          {"dim2", static_cast<int64_t>(*b)}},
                                         result));
  return match.replace(written);
}

Result<bool> decompose_trace(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  const TensorType type = match.emit.type(self);
  if (type.shape.size() != 2) return false;
  SymExpr length = match.emit.symbols().min(type.shape[0], type.shape[1]);
  ARGOSY_TRY(ValueId diagonal, match.emit(kDiagonal, {{"self", self}}, TensorType{type.dtype, {length}, {}}));
  ARGOSY_TRY(ValueId sum, match.emit(kSum, {{"self", diagonal}}, match.result()));
  return match.replace(sum);
}

// ---- along a dim ----

/// Differences of neighbours.
Result<bool> decompose_diff(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  std::optional<size_t> dim = match.dim("dim", result.shape.size());
  if (!dim || match.integer("n") != 1 || !match["prepend"].is<None>() || !match["append"].is<None>()) return false;
  if (result.dtype == DType::kBool) return false;  // whether they differ, which is no difference of numbers
  auto part = [&](int64_t start, Argument end) {
    return match.emit(aten::kSlice,
                      {{"self", match.tensor("self")},
                       {"dim", static_cast<int64_t>(*dim)},
                       {"start", start},
                       {"end", std::move(end)}},
                      result);
  };
  ARGOSY_TRY(ValueId later, part(1, None{}));
  ARGOSY_TRY(ValueId earlier, part(0, int64_t{-1}));
  ARGOSY_TRY(ValueId difference, match.emit(aten::kSubTensor, {{"self", later}, {"other", earlier}}, result));
  return match.replace(difference);
}

/// gather, where indices and tensor agree in all dims but the one that is looked along.
Result<bool> decompose_take_along(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self"), indices = match.tensor("indices");
  const std::vector<SymExpr> shape = match.emit.type(self).shape;
  const std::vector<SymExpr> wanted = match.emit.type(indices).shape;
  std::optional<size_t> dim = match.dim("dim", shape.size());
  if (!dim || shape.size() != wanted.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != *dim && shape[i] != wanted[i]) return false;
  }
  ARGOSY_TRY(
      ValueId result,
      match.emit(kGather, {{"self", self}, {"dim", static_cast<int64_t>(*dim)}, {"index", indices}}, match.result()));
  return match.replace(result);
}

/// The mean or sum of squared differences, or each of them.
Result<bool> decompose_mse(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  ValueId self = match.tensor("self");
  constexpr int64_t kEach = 0, kMean = 1;
  std::optional<int64_t> reduction = match.integer("reduction");
  TensorType type{result.dtype, match.emit.type(self).shape, {}};
  if (!reduction || type.shape != match.emit.type(match.tensor("target")).shape) return false;
  ARGOSY_TRY(ValueId loss, match.emit(aten::kSubTensor, {{"self", self}, {"other", match.tensor("target")}}, type));
  ARGOSY_TRY(loss, match.emit(aten::kMulTensor, {{"self", loss}, {"other", loss}}, type));
  if (*reduction == kEach) return match.replace(loss);
  IntList dims;
  for (size_t i = 0; i < type.shape.size(); ++i) dims.emplace_back(static_cast<int64_t>(i));
  ARGOSY_TRY(loss, match.emit(*reduction == kMean ? aten::kMeanDim : aten::kSumDim,
                              {{"self", loss}, {"dim", std::move(dims)}}, result));
  return match.replace(loss);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.broadcast_tensors.default", .name = "decompose-broadcast", .apply = decompose_broadcast},
    {.op = "aten.channel_shuffle.default", .name = "decompose-shuffle", .apply = decompose_channel_shuffle},
    {.op = "aten.column_stack.default", .name = "decompose-stack", .apply = decompose_vstack},
    {.op = "aten.diag.default", .name = "decompose-diag", .apply = decompose_diag},
    {.op = "aten.diag_embed.default", .name = "decompose-diag", .apply = decompose_diag_embed},
    {.op = "aten.diff.default", .name = "decompose-diff", .apply = decompose_diff},
    {.op = "aten.fliplr.default", .name = "decompose-flip", .apply = decompose_flip},
    {.op = "aten.flipud.default", .name = "decompose-flip", .apply = decompose_flip},
    {.op = "aten.hstack.default", .name = "decompose-stack", .apply = decompose_hstack},
    {.op = "aten.mse_loss.default", .name = "decompose-loss", .apply = decompose_mse},
    {.op = "aten.rot90.default", .name = "decompose-rotation", .apply = decompose_rotation},
    {.op = "aten.take_along_dim.default", .name = "decompose-take-along", .apply = decompose_take_along},
    {.op = "aten.trace.default", .name = "decompose-trace", .apply = decompose_trace},
    {.op = "aten.vstack.default", .name = "decompose-stack", .apply = decompose_vstack},
};

}  // namespace

std::span<const RewriteRule> arrangement_rules() { return kRules; }
std::span<const RewriteRule> arrangement_synonyms() { return kSynonymRules; }

}  // namespace argosy
