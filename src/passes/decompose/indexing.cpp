#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// One number for each pair of a row and a column.
ValueId grid(AtenBuilder& f, ValueId x, std::string_view relation, const Argument& shift) {
  ValueId rows = f.unsqueeze(f.arange(f.size(x, -2), DType::kI64, {x}), 1);
  ValueId columns = f.arange(f.size(x, -1), DType::kI64, {x});
  ValueId distance = f.sub(columns, rows);
  return f.compare(relation, distance, shift);
}

/// Where column - row >= diagonal. A kernel exists only for the other half.
bool decompose_triu(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.rank(x) < 2) return false;
  ValueId is_kept = grid(f, x, "ge", f.argument("diagonal"));
  if (f.dtype(x) == DType::kBool) return f.replace(f.bitwise_and(x, is_kept));
  return f.replace(f.where(is_kept, x, 0.0));
}

bool decompose_take(AtenBuilder& f) {
  ValueId x = f["self"], index = f["index"];
  Sizes flat = {f.symbols().mul(f.shape(x).empty() ? Sizes{f.one()} : f.shape(x))};
  const TensorType result = f.result();
  return f.replace(f.node(aten::kIndexTensor, {{"self", f.reshape(x, flat)}, {"indices", ValueList{index}}},
                          result.dtype, result.shape));
}

/// 1 where a class is the one of the row.
bool decompose_one_hot(AtenBuilder& f) {
  std::optional<int64_t> classes = f.integer("num_classes");
  if (!classes || *classes < 0) return false;
  ValueId all = f.arange(f.integer(*classes), DType::kI64, {});
  return f.replace(f.compare("eq", f.unsqueeze(f["self"], -1), all));
}

/// How many boundaries are below a number, or not above it.
bool decompose_bucketize(AtenBuilder& f) {
  bool is_search = f.op() == "aten.searchsorted.Tensor";
  ValueId x = f["self"], boundaries = f[is_search ? "sorted_sequence" : "boundaries"];
  if (is_search && f.has("sorter")) return false;
  bool is_right = f.flag("right") || (is_search && f.argument("side") == Argument(std::string("right")));
  if (f.rank(boundaries) == 0 || (f.rank(boundaries) > 1 && f.rank(boundaries) != f.rank(x))) return false;
  ValueId rows = f.rank(boundaries) > 1 ? f.unsqueeze(boundaries, -2) : boundaries;
  ValueId is_passed = f.compare(is_right ? "ge" : "gt", f.unsqueeze(x, -1), rows);
  return f.replace(f.sum(is_passed, {-1}, false, DType::kI64));
}

bool decompose_isin(AtenBuilder& f) {
  ValueId x = f["elements"], set = f["test_elements"];
  set = f.reshape(set, {f.rank(set) == 0 ? f.one() : f.symbols().mul(f.shape(set))});
  ValueId found = f.any(f.compare("eq", f.unsqueeze(x, -1), set), -1, false);
  return f.replace(f.flag("invert") ? f.logical_not(found) : found);
}

/// Counts of numbers by bins of equal width, the last of them closed.
bool decompose_histc(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  std::optional<int64_t> bins = f.integer("bins");
  std::optional<double> min = f.number("min"), max = f.number("max");
  if (!bins || !min || !max) return false;
  Sizes flat = {f.symbols().mul(f.shape(x).empty() ? Sizes{f.one()} : f.shape(x))};
  ValueId values = f.reshape(x, flat);
  // One bin from the smallest to the largest has them all.
  if (*bins == 1 && *min == *max) return f.replace(f.sum(f.compare("eq", values, values), {0}, true, DType::kI64));
  if (*min >= *max) return false;
  ValueId is_inside;
  ValueId bin;
  if (*max - *min == static_cast<double>(*bins) - 1 && kind_of(f.dtype(x)) != DTypeKind::kFloat) {
    // Whole numbers, one for each bin.
    bin = f.add_integer(f.cast(values, DType::kI64), -static_cast<int64_t>(*min));
    ValueId all = f.arange(f.integer(*bins), DType::kI64, {});
    ValueId counts = f.sum(f.compare("eq", f.unsqueeze(bin, 1), all), {0}, false, DType::kI64);
    return f.replace(f.cast(counts, result.dtype));
  }
  DType dtype = kind_of(f.dtype(x)) == DTypeKind::kFloat ? f.dtype(x) : DType::kF32;
  values = f.cast(values, dtype);
  is_inside = f.compare("ge", values, Argument(*min));
  is_inside = f.bitwise_and(is_inside, f.compare("le", values, Argument(*max)));
  bin = f.floor(f.mul(f.mul(f.add(values, -*min), static_cast<double>(*bins)), 1 / (*max - *min)));
  bin = f.clamp(bin, 0.0, static_cast<double>(*bins - 1));
  ValueId all = f.arange(f.integer(*bins), dtype, {});
  ValueId is_member = f.compare("eq", f.unsqueeze(bin, 1), all);
  is_member = f.bitwise_and(is_member, f.unsqueeze(is_inside, 1));
  return f.replace(f.cast(f.sum(is_member, {0}, false, DType::kI64), result.dtype));
}

/// Where a tensor is not 0: one vector of indices for each dim.
bool decompose_nonzero(AtenBuilder& f) {
  constexpr std::string_view kNonzero = aten::kNonzero;
  ValueId x = f[f.knows("condition") ? "condition" : "self"];
  if (f.rank(x) == 0 || f.output_count() != f.rank(x)) return false;
  Sizes shape = {f.result().shape[0], f.integer(static_cast<int64_t>(f.rank(x)))};
  ValueId all = f.node(kNonzero, {{"self", x}}, DType::kI64, shape);
  std::vector<ValueId> columns;
  for (size_t i = 0; i < f.rank(x); ++i) columns.push_back(f.select(all, 1, static_cast<int64_t>(i)));
  return f.replace(columns);
}

/// The next element of `source` at each true place.
bool decompose_masked_scatter(AtenBuilder& f) {
  constexpr std::string_view kCumsum = aten::kCumsum;
  ValueId self = f["self"], source = f["source"];
  const TensorType result = f.result();
  ValueId mask = f.expand(f["mask"], result.shape, {self});
  auto flat = [&](ValueId x) { return f.reshape(x, {f.rank(x) == 0 ? f.one() : f.symbols().mul(f.shape(x))}); };
  ValueId is_true = f.cast(flat(mask), DType::kI64);
  ValueId places = f.node(kCumsum, {{"self", is_true}, {"dim", int64_t{0}}}, DType::kI64, f.shape(is_true));
  // A zero in front: places that are not true take it, and `source` may have no elements.
  ValueId zero = f.full({f.one()}, int64_t{0}, result.dtype, {});
  ValueId elements = f.cat({zero, f.cast(flat(source), result.dtype)}, 0);
  ValueId taken = f.index_select(elements, 0, f.mul(places, is_true));
  return f.replace(f.where(mask, f.reshape(taken, result.shape, {self, mask}), self));
}

/// Elements [start, end) of a dim; a bound that is None is the tensor's own.
ValueId part(AtenBuilder& f, ValueId x, int64_t dim, Argument start, Argument end, SymExpr size) {
  Sizes shape = f.shape(x);
  shape[static_cast<size_t>(dim)] = size;
  return f.node(aten::kSliceTensor, {{"self", x}, {"dim", dim}, {"start", std::move(start)}, {"end", std::move(end)}},
                f.dtype(x), std::move(shape));
}

/// What is before the index, the new slice, what is behind.
bool decompose_select_scatter(AtenBuilder& f) {
  ValueId self = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(self));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  const SymExpr size = f.size(self, at);
  Argument index = f.argument("index"), next;
  SymExpr before;
  if (std::optional<int64_t> number = f.integer("index")) {
    before = *number < 0 ? f.symbols().add(size, f.integer(*number)) : f.integer(*number);
    next = *number + 1;
  } else {
    before = f.graph()[f["index"]].number()->expression;
    next = f.value("_operator.add(Any a, Any b) -> Any", {{"a", index}, {"b", int64_t{1}}},
                   SymType{SymType::Kind::kInt, f.symbols().add(before, f.one())});
  }
  SymExpr behind = f.symbols().sub(size, f.symbols().add(before, f.one()));
  std::vector<ValueId> parts;
  if (before.as_integer() != 0) parts.push_back(part(f, self, at, int64_t{0}, index, before));
  parts.push_back(f.unsqueeze(f.cast(f["src"], f.dtype(self)), at));
  if (behind.as_integer() != 0) parts.push_back(part(f, self, at, std::move(next), None{}, behind));
  return f.replace(f.cat(parts, at));
}

/// Joins what is before a slice, the new one, and what is behind; with steps or varying bounds, writes to its places.
bool decompose_slice_scatter(AtenBuilder& f) {
  ValueId self = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(self));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  ValueId source = f.cast(f["src"], f.dtype(self));
  std::optional<int64_t> size = f.size(self, at).as_integer();
  auto bound = [&](std::string_view name, int64_t otherwise) -> std::optional<int64_t> {
    std::optional<int64_t> given = f.has(name) ? f.integer(name) : std::optional(otherwise);
    if (!given || !size) return std::nullopt;
    return std::clamp<int64_t>(*given < 0 ? *given + *size : *given, 0, *size);
  };
  std::optional<int64_t> start = bound("start", 0), end = bound("end", INT64_MAX);
  Sizes written = f.shape(self);
  if (f.rank(source) == f.rank(self)) written[*dim] = f.size(source, at);
  source = f.expand(source, written, {self});
  if (start && end && f.integer("step") == 1 && f.integer(*end - *start) == written[*dim]) {
    std::vector<ValueId> parts;
    if (*start > 0) parts.push_back(f.slice(self, at, 0, f.integer(*start)));
    parts.push_back(source);
    if (*end < *size) parts.push_back(f.slice(self, at, *end, f.integer(*size - *end)));
    return f.replace(f.cat(parts, at));
  }
  // The places of a slice are the slice of all places, whatever its bounds are.
  ValueId places = f.node(aten::kSliceTensor,
                          {{"self", f.arange(f.size(self, at), DType::kI64, {self})},
                           {"dim", int64_t{0}},
                           {"start", f.argument("start")},
                           {"end", f.argument("end")},
                           {"step", f.argument("step")}},
                          DType::kI64, {written[*dim]});
  ValueList indices(*dim + 1);
  indices.back() = places;
  return f.replace(f.node(aten::kIndexPut, {{"self", self}, {"indices", indices}, {"values", source}}, f.dtype(self),
                          f.shape(self)));
}

constexpr RewriteRule kIndexingRules[] = {
    {.op = "aten.nonzero_numpy.default", .name = "decompose-nonzero", .apply = write<decompose_nonzero>},
    {.op = "aten.where.default", .name = "decompose-nonzero", .apply = write<decompose_nonzero>},
    {.op = "aten.masked_scatter.default", .name = "decompose-masked-scatter", .apply = write<decompose_masked_scatter>},
    {.op = "aten.select_scatter.default", .name = "decompose-select-scatter", .apply = write<decompose_select_scatter>},
    {.op = "aten.slice_scatter.default", .name = "decompose-slice-scatter", .apply = write<decompose_slice_scatter>},
    {.op = "aten.triu.default", .name = "decompose-triu", .apply = write<decompose_triu>},
    {.op = "aten.take.default", .name = "decompose-take", .apply = write<decompose_take>},
    {.op = "aten.one_hot.default", .name = "decompose-one-hot", .apply = write<decompose_one_hot>},
    {.op = "aten.bucketize.Tensor", .name = "decompose-bucketize", .apply = write<decompose_bucketize>},
    {.op = "aten.searchsorted.Tensor", .name = "decompose-bucketize", .apply = write<decompose_bucketize>},
    {.op = "aten.isin.Tensor_Tensor", .name = "decompose-isin", .apply = write<decompose_isin>},
    {.op = "aten.histc.default", .name = "decompose-histc", .apply = write<decompose_histc>},
};

}  // namespace

std::span<const RewriteRule> indexing() { return kIndexingRules; }

}  // namespace argosy::decompose
