#include <algorithm>

#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// ---- joining ----

/// cat of dims counted from the front. torch lets empty tensors of one dim pass with tensors of any; they go.
Result<bool> normalise_cat(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  ValueList given = std::get<ValueList>(match["tensors"].variant()), tensors;
  for (ValueId tensor : given) {
    const TensorType& type = match.emit.type(tensor);
    bool is_legacy_empty = type.shape.size() == 1 && type.shape[0].as_integer() == 0 && result.shape.size() > 1;
    if (!is_legacy_empty) tensors.push_back(tensor);
  }
  std::optional<size_t> dim = match.dim("dim", result.shape.size());
  if (!dim || tensors.empty()) return false;
  if (tensors.size() == 1 && match.emit.type(tensors[0]).dtype == result.dtype) return match.replace(tensors[0]);
  auto axis = static_cast<int64_t>(*dim);
  if (match.schema().name == "aten.cat.default" && match.integer("dim") == axis && tensors == given) return false;
  ARGOSY_TRY(ValueId joined, match.emit(aten::kCat, {{"tensors", std::move(tensors)}, {"dim", axis}}, result));
  return match.replace(joined);
}

Result<bool> decompose_stack(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  std::optional<size_t> dim = match.dim("dim", result.shape.size());
  if (!dim) return false;
  auto axis = static_cast<int64_t>(*dim);
  ValueList tensors;
  for (ValueId tensor : std::get<ValueList>(match["tensors"].variant())) {
    TensorType type = result;
    type.shape[*dim] = match.emit.number(1);
    type.dtype = match.emit.type(tensor).dtype;
    ARGOSY_TRY(ValueId one, match.emit(aten::kUnsqueeze, {{"self", tensor}, {"dim", axis}}, type));
    tensors.push_back(one);
  }
  ARGOSY_TRY(ValueId joined, match.emit(aten::kCat, {{"tensors", std::move(tensors)}, {"dim", axis}}, result));
  return match.replace(joined);
}

// ---- taking apart ----

Result<bool> decompose_unbind(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  std::optional<size_t> dim = match.dim("dim", match.emit.type(self).shape.size());
  if (!dim) return false;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < match.output_count(); ++i) {
    ARGOSY_TRY(ValueId part,
               match.emit(aten::kSelect,
                          {{"self", self}, {"dim", static_cast<int64_t>(*dim)}, {"index", static_cast<int64_t>(i)}},
                          match.result(i)));
    parts.push_back(part);
  }
  return match.replace(parts);
}

/// The parts one by one, where their borders are known but the sizes of all parts are not.
Result<bool> decompose_to_slices(Match& match, size_t dim) {
  ValueId self = match.tensor("self");
  std::vector<ValueId> parts;
  int64_t start = 0;
  for (size_t i = 0; i < match.output_count(); ++i) {
    bool is_last = i + 1 == match.output_count();
    std::optional<int64_t> size = match.result(i).shape[dim].as_integer();
    if (!size && !is_last) return false;
    Argument end = is_last ? Argument(None{}) : Argument(start + *size);
    ARGOSY_TRY(
        ValueId part,
        match.emit(aten::kSlice,
                   {{"self", self}, {"dim", static_cast<int64_t>(dim)}, {"start", start}, {"end", std::move(end)}},
                   match.result(i)));
    parts.push_back(part);
    start += size.value_or(0);
  }
  return match.replace(parts);
}

/// chunk, split and their kin: split_with_sizes by what the parts are. The last sizes may not be known: slices.
Result<bool> normalise_split(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  std::optional<size_t> dim = match.dim("dim", match.emit.type(self).shape.size());
  if (!dim || match.output_count() == 0) return false;
  if (match.output_count() == 1 && match.result().shape == match.emit.type(self).shape) return match.replace(self);
  bool is_by_sizes = match.schema().name == "aten.split_with_sizes.default";
  IntList sizes;
  std::vector<TensorType> types;
  for (size_t i = 0; i < match.output_count(); ++i) {
    types.push_back(match.result(i));
    if (types.back().shape.size() != match.emit.type(self).shape.size()) return false;
    if (auto size = types.back().shape[*dim].as_integer()) sizes.emplace_back(*size);
  }
  if (sizes.size() != types.size()) {
    // Sizes that are values, in the order of the parts, are as good as numbers.
    const IntList* given = match.has("split_size") ? match["split_size"].get_if<IntList>() : nullptr;
    if (given == nullptr || is_by_sizes) return is_by_sizes ? Result<bool>(false) : decompose_to_slices(match, *dim);
    sizes = *given;
  }
  auto axis = static_cast<int64_t>(*dim);
  if (is_by_sizes && match.integer("dim") == axis && match["split_sizes"] == Argument(sizes)) return false;
  ARGOSY_TRY(std::vector<ValueId> parts,
             match.emit.several(aten::kSplitWithSizes,
                                {{"self", self}, {"split_sizes", std::move(sizes)}, {"dim", axis}}, types));
  return match.replace(parts);
}

Result<bool> decompose_narrow(RuleContext& context, const RewriteRule&) {
  Match match(context);
  std::optional<int64_t> start = match.integer("start"), length = match.integer("length");
  std::optional<size_t> dim = match.dim("dim", match.result().shape.size());
  if (!start || !dim || (!length && *start != 0)) return false;
  Argument end = length ? Argument(*start + *length) : match["length"];
  if (length && *start < 0 && *start + *length == 0) end = None{};
  ARGOSY_TRY(ValueId part, match.emit(aten::kSlice,
                                      {{"self", match.tensor("self")},
                                       {"dim", static_cast<int64_t>(*dim)},
                                       {"start", *start},
                                       {"end", std::move(end)}},
                                      match.result()));
  return match.replace(part);
}

// ---- repeating ----

/// repeat of ones does nothing but add dims of size 1 in front.
Result<bool> normalise_repeat(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  const std::vector<SymExpr> shape = match.emit.type(self).shape;
  bool is_tile = match.has("dims");
  IntList repeats = std::get<IntList>(match[is_tile ? "dims" : "repeats"].variant());
  if (repeats.size() < shape.size()) repeats.insert(repeats.begin(), shape.size() - repeats.size(), int64_t{1});
  bool does_nothing = std::ranges::all_of(repeats, [](const IntItem& item) { return item == IntItem(int64_t{1}); });
  if (does_nothing && repeats.size() == shape.size()) return match.replace(self);
  if (does_nothing) {
    IntList sizes(repeats.size() - shape.size(), int64_t{1});
    ARGOSY_TRY(IntList own, sizes_of(match.emit, self));
    sizes.insert(sizes.end(), own.begin(), own.end());
    ARGOSY_TRY(ValueId result, match.emit(aten::kReshape, {{"self", self}, {"shape", sizes}}, match.result()));
    return match.replace(result);
  }
  if (!is_tile) return false;
  ARGOSY_TRY(ValueId result,
             match.emit(aten::kRepeat, {{"self", self}, {"repeats", std::move(repeats)}}, match.result()));
  return match.replace(result);
}

/// Each element `repeats` times in a row: a new dim of that size behind the one that is repeated, then merged.
Result<bool> decompose_repeat_interleave(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  TensorType type = match.emit.type(self);
  type.strides.clear();
  std::optional<size_t> dim;
  if (match["dim"].is<None>()) {
    SymExpr count = match.emit.number(1);
    for (SymExpr size : type.shape) count = match.emit.symbols().mul(count, size);
    type.shape = {count};
    ARGOSY_TRY(self, match.emit(aten::kReshape, {{"self", self}, {"shape", IntList{int64_t{-1}}}}, type));
    dim = 0;
  } else {
    dim = match.dim("dim", type.shape.size());
  }
  if (!dim || match["repeats"].is<None>() || match.result().shape.size() != type.shape.size()) return false;
  const int64_t* number = match["repeats"].get_if<int64_t>();
  if (number != nullptr && *number == 1) return match.replace(self);
  IntItem repeats = number != nullptr ? IntItem(*number) : IntItem(std::get<ValueId>(match["repeats"].variant()));
  SymExpr count = number != nullptr ? match.emit.number(*number)
                                    : match.emit.graph()[std::get<ValueId>(repeats)].number()->expression;
  if (!count.is_valid()) return false;
  ARGOSY_TRY(IntList sizes, sizes_of(match.emit, self));
  auto inner = static_cast<int64_t>(*dim) + 1;
  type.shape.insert(type.shape.begin() + inner, match.emit.number(1));
  ARGOSY_TRY(ValueId wide, match.emit(aten::kUnsqueeze, {{"self", self}, {"dim", inner}}, type));
  type.shape[*dim + 1] = count;
  IntList wide_sizes = sizes;
  wide_sizes.insert(wide_sizes.begin() + inner, repeats);
  ARGOSY_TRY(wide, match.emit(aten::kExpand, {{"self", wide}, {"size", std::move(wide_sizes)}}, type));
  std::optional<int64_t> merged = match.result().shape[*dim].as_integer();
  sizes[*dim] = merged ? *merged : int64_t{-1};
  ARGOSY_TRY(ValueId result, match.emit(aten::kReshape, {{"self", wide}, {"shape", std::move(sizes)}}, match.result()));
  return match.replace(result);
}

/// Coordinates of a grid: each tensor along a dim of its own, the same along the others.
Result<bool> decompose_meshgrid(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const ValueList tensors = std::get<ValueList>(match["tensors"].variant());
  const auto* indexing = match.has("indexing") ? match["indexing"].get_if<std::string>() : nullptr;
  bool is_xy = indexing != nullptr && *indexing == "xy" && tensors.size() >= 2;
  if (match.output_count() != tensors.size()) return false;
  auto axis_of = [&](size_t i) { return is_xy && i < 2 ? 1 - i : i; };
  IntList sizes(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (match.emit.type(tensors[i]).shape.empty()) {
      sizes[axis_of(i)] = int64_t{1};
    } else {
      ARGOSY_TRY(sizes[axis_of(i)], match.emit.size(tensors[i], 0));
    }
  }
  std::vector<ValueId> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorType result = match.result(i);
    if (result.shape.size() != tensors.size()) return false;
    TensorType line{result.dtype, std::vector<SymExpr>(tensors.size(), match.emit.number(1)), {}};
    line.shape[axis_of(i)] = result.shape[axis_of(i)];
    IntList line_sizes(tensors.size(), int64_t{1});
    line_sizes[axis_of(i)] = sizes[axis_of(i)];
    ARGOSY_TRY(ValueId grid,
               match.emit(aten::kReshape, {{"self", tensors[i]}, {"shape", std::move(line_sizes)}}, line));
    ARGOSY_TRY(grid, match.emit(aten::kExpand, {{"self", grid}, {"size", sizes}}, result));
    grids.push_back(grid);
  }
  return match.replace(grids);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.cat.default", .name = "normalise-cat", .apply = normalise_cat},
    {.op = "aten.concat.default", .name = "normalise-cat", .apply = normalise_cat},
    {.op = "aten.concatenate.default", .name = "normalise-cat", .apply = normalise_cat},
    {.op = "aten.stack.default", .name = "decompose-stack", .apply = decompose_stack},
    {.op = "aten.unbind.int", .name = "decompose-unbind", .apply = decompose_unbind},
    {.op = "aten.chunk.default", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.split.Tensor", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.split.sizes", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.split_with_sizes.default", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.tensor_split.indices", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.tensor_split.sections", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.unsafe_chunk.default", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.unsafe_split.Tensor", .name = "normalise-split", .apply = normalise_split},
    {.op = "aten.narrow.default", .name = "decompose-narrow", .apply = decompose_narrow},
    {.op = "aten.repeat.default", .name = "normalise-repeat", .apply = normalise_repeat},
    {.op = "aten.tile.default", .name = "normalise-repeat", .apply = normalise_repeat},
    {.op = "aten.repeat_interleave.self_int",
     .name = "decompose-repeat-interleave",
     .apply = decompose_repeat_interleave},
    {.op = "aten.meshgrid.default", .name = "decompose-meshgrid", .apply = decompose_meshgrid},
    {.op = "aten.meshgrid.indexing", .name = "decompose-meshgrid", .apply = decompose_meshgrid},
};

}  // namespace

std::span<const RewriteRule> joining_rules() { return kRules; }

}  // namespace argosy
