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

bool rename_index(AtenBuilder& f) {
  const TensorType result = f.result();
  if (f.op() == "aten._unsafe_index.Tensor") {
    return f.replace(
        f.node(aten::kIndex, {{"self", f["self"]}, {"indices", f.argument("indices")}}, result.dtype, result.shape));
  }
  return f.replace(f.node(aten::kIndexPut,
                          {{"self", f["self"]},
                           {"indices", f.argument("indices")},
                           {"values", f["values"]},
                           {"accumulate", f.argument("accumulate")}},
                          result.dtype, result.shape));
}

bool decompose_take(AtenBuilder& f) {
  ValueId x = f["self"], index = f["index"];
  Sizes flat = {f.symbols().mul(f.shape(x).empty() ? Sizes{f.one()} : f.shape(x))};
  const TensorType result = f.result();
  return f.replace(
      f.node(aten::kIndex, {{"self", f.reshape(x, flat)}, {"indices", ValueList{index}}}, result.dtype, result.shape));
}

/// 1 where a class is the one of the row.
bool decompose_one_hot(AtenBuilder& f) {
  const TensorType result = f.result();
  std::optional<int64_t> classes = f.integer("num_classes");
  if (!classes || *classes < 0) return false;
  ValueId all = f.arange(f.integer(*classes), DType::kI64, {});
  return f.replace(f.compare("eq", f.unsqueeze(f["self"], -1), all));
}

/// How many boundaries are below a number, or not above it.
bool decompose_bucketize(AtenBuilder& f) {
  bool is_search = f.op() == "aten.searchsorted.Tensor";
  ValueId x = f["self"], boundaries = f[is_search ? "sorted_sequence" : "boundaries"];
  if (is_search && (f.has("sorter") || f.has("side"))) return false;
  if (f.rank(boundaries) == 0 || (f.rank(boundaries) > 1 && f.rank(boundaries) != f.rank(x))) return false;
  ValueId rows = f.rank(boundaries) > 1 ? f.unsqueeze(boundaries, -2) : boundaries;
  ValueId is_passed = f.compare(f.flag("right") ? "ge" : "gt", f.unsqueeze(x, -1), rows);
  return f.replace(f.sum(is_passed, {-1}, false, DType::kI64));
}

bool decompose_isin(AtenBuilder& f) {
  ValueId x = f["elements"], set = f["test_elements"];
  if (f.rank(set) != 1) return false;
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
  is_inside = f.bitwise_and(f.compare("ge", values, Argument(*min)), f.compare("le", values, Argument(*max)));
  bin = f.floor(f.mul(f.mul(f.add(values, -*min), static_cast<double>(*bins)), 1 / (*max - *min)));
  bin = f.clamp(bin, 0.0, static_cast<double>(*bins - 1));
  ValueId all = f.arange(f.integer(*bins), dtype, {});
  ValueId is_member = f.bitwise_and(f.compare("eq", f.unsqueeze(bin, 1), all), f.unsqueeze(is_inside, 1));
  return f.replace(f.cast(f.sum(is_member, {0}, false, DType::kI64), result.dtype));
}

/// All elements that a window meets, one window after the other.
bool decompose_unfold(AtenBuilder& f) {
  constexpr std::string_view kUnfoldCopy =
      "aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor";
  ValueId x = f["self"];
  const TensorType result = f.result();
  if (f.rank(x) == 0) return f.replace(f.unsqueeze(x, 0));
  std::optional<size_t> dim = f.dim("dimension", f.rank(x));
  if (!dim) return false;
  return f.replace(f.node(kUnfoldCopy,
                          {{"self", x},
                           {"dimension", static_cast<int64_t>(*dim)},
                           {"size", f.argument("size")},
                           {"step", f.argument("step")}},
                          result.dtype, result.shape));
}

/// Patches of an image as columns.
bool decompose_im2col(AtenBuilder& f) {
  ValueId x = f["self"];
  auto kernel = f.per_dim("kernel_size", 2), dilation = f.per_dim("dilation", 2), padding = f.per_dim("padding", 2),
       stride = f.per_dim("stride", 2);
  if (f.rank(x) != 4 || !kernel || !dilation || !padding || !stride) return false;
  const TensorType result = f.result();
  Sizes padded = f.shape(x);
  for (size_t i = 0; i < 2; ++i) padded[2 + i] = f.symbols().add(padded[2 + i], f.integer(2 * (*padding)[i]));
  if ((*padding)[0] != 0 || (*padding)[1] != 0) {
    x = f.node(aten::kConstantPad,
               {{"self", x}, {"pad", to_list({(*padding)[1], (*padding)[1], (*padding)[0], (*padding)[0]})}},
               f.dtype(x), padded);
  }
  auto windows = [&](size_t i) {
    SymExpr room = f.symbols().sub(padded[2 + i], f.integer((*dilation)[i] * ((*kernel)[i] - 1) + 1));
    return f.symbols().add(f.symbols().floor_div(room, f.integer((*stride)[i])), f.one());
  };
  SymExpr rows = windows(0), columns = windows(1);
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < (*kernel)[0]; ++i) {
    for (int64_t j = 0; j < (*kernel)[1]; ++j) {
      ValueId part = f.slice(x, 2, i * (*dilation)[0], rows, (*stride)[0]);
      part = f.slice(part, 3, j * (*dilation)[1], columns, (*stride)[1], {x});
      parts.push_back(f.unsqueeze(part, 2));
    }
  }
  return f.replace(f.reshape(f.cat(parts, 2), result.shape));
}

/// Parts that follow each other.
bool decompose_split(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  std::vector<ValueId> parts;
  int64_t start = 0;
  for (size_t i = 0; i < f.output_count(); ++i) {
    std::optional<int64_t> size = f.result(i).shape[*dim].as_integer();
    if (!size) return false;
    parts.push_back(f.slice(x, at, start, f.integer(*size)));
    start += *size;
  }
  return f.replace(parts);
}

/// Without dims, all elements in a row.
bool flatten_roll(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<std::vector<int64_t>> dims = numbers(f.argument("dims"));
  const auto* shifts = f.argument("shifts").get_if<IntList>();
  if (!dims || !dims->empty() || shifts == nullptr || f.rank(x) == 0) return false;
  constexpr std::string_view kRoll = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor";
  ValueId flat = f.reshape(x, {f.symbols().mul(f.shape(x))});
  ValueId rolled =
      f.node(kRoll, {{"self", flat}, {"shifts", *shifts}, {"dims", to_list({0})}}, f.dtype(x), f.shape(flat));
  return f.replace(f.reshape(rolled, f.result().shape, {x}));
}

/// Where a tensor is not 0: one vector of indices for each dim.
bool decompose_nonzero(AtenBuilder& f) {
  constexpr std::string_view kNonzero = "aten::nonzero(Tensor self) -> Tensor";
  ValueId x = f[f.knows("condition") ? "condition" : "self"];
  if (f.rank(x) == 0 || f.output_count() != f.rank(x)) return false;
  Sizes shape = {f.result().shape[0], f.integer(static_cast<int64_t>(f.rank(x)))};
  ValueId all = f.node(kNonzero, {{"self", x}}, DType::kI64, shape);
  std::vector<ValueId> columns;
  for (size_t i = 0; i < f.rank(x); ++i) columns.push_back(f.select(all, 1, static_cast<int64_t>(i)));
  return f.replace(columns);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.nonzero_numpy.default", .name = "decompose-nonzero", .apply = write<decompose_nonzero>},
    {.op = "aten.where.default", .name = "decompose-nonzero", .apply = write<decompose_nonzero>},
    {.op = "aten.triu.default", .name = "decompose-triu", .apply = write<decompose_triu>},
    {.op = "aten._unsafe_index.Tensor", .name = "rename-index", .apply = write<rename_index>},
    {.op = "aten._unsafe_index_put.default", .name = "rename-index", .apply = write<rename_index>},
    {.op = "aten.take.default", .name = "decompose-take", .apply = write<decompose_take>},
    {.op = "aten.one_hot.default", .name = "decompose-one-hot", .apply = write<decompose_one_hot>},
    {.op = "aten.bucketize.Tensor", .name = "decompose-bucketize", .apply = write<decompose_bucketize>},
    {.op = "aten.searchsorted.Tensor", .name = "decompose-bucketize", .apply = write<decompose_bucketize>},
    {.op = "aten.isin.Tensor_Tensor", .name = "decompose-isin", .apply = write<decompose_isin>},
    {.op = "aten.histc.default", .name = "decompose-histc", .apply = write<decompose_histc>},
    {.op = "aten.unfold.default", .name = "decompose-unfold", .apply = write<decompose_unfold>},
    {.op = "aten.im2col.default", .name = "decompose-im2col", .apply = write<decompose_im2col>},
    {.op = "aten.split_with_sizes.default", .name = "decompose-split", .apply = write<decompose_split>},
    {.op = "aten.chunk.default", .name = "decompose-split", .apply = write<decompose_split>},
    {.op = "aten.roll.default", .name = "flatten-roll", .apply = write<flatten_roll>},
};

}  // namespace

std::span<const RewriteRule> indexing() { return kRules; }

}  // namespace argosy::decompose
