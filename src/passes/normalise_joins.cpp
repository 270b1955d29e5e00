#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// ---- joining ----

/// cat with its dim counted from the front, without tensors that add nothing. torch allows empty ones of one dim beside
/// any others.
bool normalise_cat(AtenBuilder& f) {
  const TensorType result = f.result();
  std::optional<size_t> dim = f.dim("dim", result.shape.size());
  if (!dim) return false;
  ValueList tensors;
  for (ValueId tensor : f.tensors("tensors")) {
    const Sizes& shape = f.shape(tensor);
    bool is_legacy_empty = shape.size() == 1 && shape[0].as_integer() == 0 && result.shape.size() > 1;
    // Where dtypes differ, an empty tensor may be the one that the others are cast to.
    bool adds_nothing =
        shape.size() == result.shape.size() && shape[*dim].as_integer() == 0 &&
        std::ranges::all_of(f.tensors("tensors"), [&](ValueId each) { return f.dtype(each) == result.dtype; });
    if (!is_legacy_empty && !adds_nothing) tensors.push_back(tensor);
  }
  if (tensors.empty()) return false;
  if (tensors.size() == 1 && f.dtype(tensors[0]) == result.dtype) return f.replace(tensors[0]);
  auto axis = static_cast<int64_t>(*dim);
  if (f.op() == "aten.cat.default" && f.integer("dim") == axis && tensors == f.tensors("tensors")) return false;
  return f.become(aten::kCat, {{"tensors", std::move(tensors)}, {"dim", axis}});
}

bool decompose_stack(AtenBuilder& f) {
  std::optional<size_t> dim = f.dim("dim", f.result().shape.size());
  if (!dim) return false;
  auto axis = static_cast<int64_t>(*dim);
  ValueList tensors = f.tensors("tensors");
  for (ValueId& tensor : tensors) tensor = f.unsqueeze(tensor, axis);
  return f.become(aten::kCat, {{"tensors", std::move(tensors)}, {"dim", axis}});
}

// ---- taking apart ----

bool decompose_unbind(AtenBuilder& f) {
  ValueId self = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(self));
  if (!dim) return false;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < f.output_count(); ++i) {
    parts.push_back(f.select(self, static_cast<int64_t>(*dim), static_cast<int64_t>(i)));
  }
  return f.replace(parts);
}

/// The parts one by one, where their borders are known but the sizes of all parts are not.
bool decompose_to_slices(AtenBuilder& f, size_t dim) {
  std::vector<ValueId> parts;
  int64_t start = 0;
  for (size_t i = 0; i < f.output_count(); ++i) {
    bool is_last = i + 1 == f.output_count();
    SymExpr size = f.result(i).shape[dim];
    std::optional<int64_t> known = size.as_integer();
    if (!known && !is_last) return false;
    Argument end = is_last ? Argument(None{}) : Argument(start + *known);
    parts.push_back(f.slice_between(f["self"], static_cast<int64_t>(dim), start, std::move(end), size));
    start += known.value_or(0);
  }
  return f.replace(parts);
}

/// chunk, split and similar ops: split_with_sizes by the sizes of the parts. The last sizes may not be known: slices.
bool normalise_split(AtenBuilder& f) {
  ValueId self = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(self));
  if (!dim || f.output_count() == 0) return false;
  if (f.output_count() == 1 && f.result().shape == f.shape(self)) return f.replace(self);
  bool is_by_sizes = f.op() == "aten.split_with_sizes.default";
  IntList sizes;
  for (size_t i = 0; i < f.output_count(); ++i) {
    const Sizes shape = f.result(i).shape;
    if (shape.size() != f.rank(self)) return false;
    if (auto size = shape[*dim].as_integer()) sizes.emplace_back(*size);
  }
  if (sizes.size() != f.output_count()) {
    // Sizes that are values, in the order of the parts, are as good as numbers.
    const IntList* given = f.knows("split_size") ? f.argument("split_size").get_if<IntList>() : nullptr;
    if (given == nullptr || is_by_sizes) return !is_by_sizes && decompose_to_slices(f, *dim);
    sizes = *given;
  }
  auto axis = static_cast<int64_t>(*dim);
  if (is_by_sizes && f.integer("dim") == axis && f.argument("split_sizes") == Argument(sizes)) return false;
  return f.become(aten::kSplitWithSizes, {{"self", self}, {"split_sizes", std::move(sizes)}, {"dim", axis}});
}

bool decompose_narrow(AtenBuilder& f) {
  std::optional<int64_t> start = f.integer("start"), length = f.integer("length");
  std::optional<size_t> dim = f.dim("dim", f.result().shape.size());
  if (!start || !dim || (!length && *start != 0)) return false;
  Argument end = length ? Argument(*start + *length) : f.argument("length");
  if (length && *start < 0 && *start + *length == 0) end = None{};
  return f.replace(
      f.slice_between(f["self"], static_cast<int64_t>(*dim), *start, std::move(end), f.result().shape[*dim]));
}

// ---- repeating ----

/// repeat of ones does nothing but add dims of size 1 in front.
bool normalise_repeat(AtenBuilder& f) {
  ValueId self = f["self"];
  bool is_tile = f.knows("dims");
  IntList repeats = std::get<IntList>(f.argument(is_tile ? "dims" : "repeats").variant());
  const size_t rank = f.rank(self);
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), int64_t{1});
  bool does_nothing = std::ranges::all_of(repeats, [](const IntItem& item) { return item == IntItem(int64_t{1}); });
  if (does_nothing) {
    Sizes shape(repeats.size() - rank, f.one());
    shape.insert(shape.end(), f.shape(self).begin(), f.shape(self).end());
    return f.replace(f.reshape(self, std::move(shape)));
  }
  return is_tile && f.become(aten::kRepeat, {{"self", self}, {"repeats", std::move(repeats)}});
}

/// Each element `repeats` times in a row: a new dim of that size behind the one that is repeated, then merged.
bool decompose_repeat_interleave(AtenBuilder& f) {
  ValueId self = f["self"];
  std::optional<size_t> dim = f.has("dim") ? f.dim("dim", f.rank(self)) : 0;
  if (!dim || !f.has("repeats")) return false;
  if (!f.has("dim")) self = f.reshape(self, {f.symbols().mul(f.shape(self))});
  if (f.result().shape.size() != f.rank(self)) return false;
  std::optional<int64_t> number = f.integer("repeats");
  if (number == 1) return f.replace(self);
  SymExpr count = number ? f.integer(*number) : f.graph()[f["repeats"]].number()->expression;
  if (!count.is_valid()) return false;
  if (!number) f.know_size(count, f["repeats"]);
  auto inner = static_cast<int64_t>(*dim) + 1;
  ValueId wide = f.unsqueeze(self, inner);
  Sizes shape = f.shape(wide);
  shape[*dim + 1] = count;
  return f.replace(f.reshape(f.expand(wide, shape, {self}), f.result().shape, {self}));
}

/// Coordinates of a grid: each tensor along a dim of its own, the same along the others.
bool decompose_meshgrid(AtenBuilder& f) {
  const ValueList tensors = f.tensors("tensors");
  const auto* indexing = f.knows("indexing") ? f.argument("indexing").get_if<std::string>() : nullptr;
  bool is_xy = indexing != nullptr && *indexing == "xy" && tensors.size() >= 2;
  if (f.output_count() != tensors.size()) return false;
  auto axis_of = [&](size_t i) { return is_xy && i < 2 ? 1 - i : i; };
  Sizes shape(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    shape[axis_of(i)] = f.rank(tensors[i]) == 0 ? f.one() : f.size(tensors[i], 0);
  }
  std::vector<ValueId> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Sizes line(tensors.size(), f.one());
    line[axis_of(i)] = shape[axis_of(i)];
    grids.push_back(f.expand(f.reshape(tensors[i], std::move(line)), shape, tensors));
  }
  return f.replace(grids);
}

constexpr RewriteRule kJoinsRules[] = {
    {.op = "aten.cat.default", .name = "normalise-cat", .apply = write<normalise_cat>},
    {.op = "aten.concat.default", .name = "normalise-cat", .apply = write<normalise_cat>},
    {.op = "aten.concatenate.default", .name = "normalise-cat", .apply = write<normalise_cat>},
    {.op = "aten.stack.default", .name = "decompose-stack", .apply = write<decompose_stack>},
    {.op = "aten.unbind.int", .name = "decompose-unbind", .apply = write<decompose_unbind>},
    {.op = "aten.chunk.default", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.split.Tensor", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.split.sizes", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.split_with_sizes.default", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.tensor_split.indices", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.tensor_split.sections", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.unsafe_chunk.default", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.unsafe_split.Tensor", .name = "normalise-split", .apply = write<normalise_split>},
    {.op = "aten.narrow.default", .name = "decompose-narrow", .apply = write<decompose_narrow>},
    {.op = "aten.repeat.default", .name = "normalise-repeat", .apply = write<normalise_repeat>},
    {.op = "aten.tile.default", .name = "normalise-repeat", .apply = write<normalise_repeat>},
    {.op = "aten.repeat_interleave.self_int",
     .name = "decompose-repeat-interleave",
     .apply = write<decompose_repeat_interleave>},
    {.op = "aten.meshgrid.default", .name = "decompose-meshgrid", .apply = write<decompose_meshgrid>},
    {.op = "aten.meshgrid.indexing", .name = "decompose-meshgrid", .apply = write<decompose_meshgrid>},
};

}  // namespace

std::span<const RewriteRule> joining_rules() { return kJoinsRules; }

}  // namespace argosy
