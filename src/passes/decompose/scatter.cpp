#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"
#include "passes/extremes.h"

namespace argosy::decompose {
namespace {

/// index_put(self, (None, .., index), values): rows of one dim are written.
bool put_rows(AtenBuilder& f, int64_t dim, ValueId values, bool accumulates) {
  ValueId self = f["self"], index = f["index"];
  if (f.rank(self) == 0) return false;
  const TensorType result = f.result();
  if (f.rank(index) == 0) index = f.unsqueeze(index, 0);
  ValueList indices(f.at(self, dim) + 1);
  indices.back() = index;
  return f.replace(f.node(aten::kIndexPut,
                          {{"self", self}, {"indices", indices}, {"values", values}, {"accumulate", accumulates}},
                          result.dtype, result.shape));
}

bool decompose_index_add(AtenBuilder& f) {
  std::optional<int64_t> dim = f.integer("dim");
  if (!dim) return false;
  ValueId source = f["source"];
  std::optional<double> alpha = f.number("alpha");
  if (!alpha) return false;
  bool is_float = kind_of(f.dtype(source)) == DTypeKind::kFloat;
  source = is_float ? f.mul(source, *alpha) : f.mul_integer(source, static_cast<int64_t>(*alpha));
  return put_rows(f, *dim, source, true);
}

bool decompose_index_copy(AtenBuilder& f) {
  std::optional<int64_t> dim = f.integer("dim");
  return dim && put_rows(f, *dim, f["source"], false);
}

bool decompose_index_fill(AtenBuilder& f) {
  std::optional<int64_t> dim = f.integer("dim");
  return dim && put_rows(f, *dim, f.scalar(f.argument("value"), f.result().dtype), false);
}

/// For each place, the product or the extreme of all that is written along its line.
bool decompose_scatter_reduce(AtenBuilder& f) {
  constexpr std::string_view kProd = aten::kProdDimInt;
  const auto* given = f.argument("reduce").get_if<std::string>();
  ValueId self = f["self"], index = f["index"], source = f["src"];
  const TensorType result = f.result();
  std::optional<size_t> dim = f.dim("dim", f.rank(self));
  if (given == nullptr || !dim || f.rank(self) == 0 || !f.flag("include_self")) return false;
  const std::string how = *given;
  if (how != "prod" && how != "amax" && how != "amin") return false;
  auto at = static_cast<int64_t>(*dim);
  for (size_t i = 0; i < f.rank(self); ++i) {
    source = f.slice(source, static_cast<int64_t>(i), 0, f.shape(index)[i], 1, {index});
  }
  // [.., place, written, ..]; a place that nothing is written to has what it had.
  ValueId places = f.unsqueeze(f.arange(f.size(self, at), DType::kI64, {self}), 1);
  for (size_t i = *dim + 1; i < f.rank(self); ++i) places = f.unsqueeze(places, -1);
  ValueId is_own = f.compare("eq", f.unsqueeze(index, at), places);
  const Argument neutral = how == "prod" ? Argument(int64_t{1}) : extreme_of(result.dtype, how == "amin");
  ValueId written = f.unsqueeze(source, at);
  ValueId values = f.where(is_own, written, f.scalar(neutral, result.dtype));
  Sizes shape = f.reduced(values, {at + 1}, false);
  ValueId total;
  if (how == "prod") {
    total = f.node(kProd, {{"self", values}, {"dim", at + 1}}, result.dtype, shape);
  } else {
    total = f.node(how == "amax" ? aten::kAmax : aten::kAmin, {{"self", values}, {"dim", to_list({at + 1})}},
                   result.dtype, shape);
  }
  // The index may have fewer lines than the tensor.
  Sizes missing;
  bool is_short = false;
  for (size_t i = f.rank(self); i-- > 0;) {
    missing.push_back(f.integer(0));
    missing.push_back(i == *dim ? f.integer(0) : f.symbols().sub(f.shape(self)[i], f.shape(index)[i]));
    is_short = is_short || missing.back().as_integer() != 0;
  }
  if (is_short) {
    total =
        f.node(aten::kConstantPadNd, {{"self", total}, {"pad", f.items(missing, {self, index})}, {"value", neutral}},
               result.dtype, result.shape);
  }
  if (how == "prod") return f.replace(f.mul(self, total));
  return f.replace(f.binary(how == "amax" ? aten::kMaximum : aten::kMinimum, self, total));
}

/// How often each number from 0 on occurs, or the sum of its weights.
bool decompose_bincount(AtenBuilder& f) {
  constexpr std::string_view kItem = aten::kItem;
  const TensorType result = f.result();
  ValueId self = f.cast(f["self"], DType::kI64);
  if (f.rank(self) != 1 || result.shape.size() != 1) return false;
  Argument bins;
  if (std::optional<int64_t> known = result.shape[0].as_integer()) {
    bins = *known;
  } else {
    // One more than the largest, and at least as many as asked for; there may be no numbers at all.
    ValueId least = f.add_integer(f.unsqueeze(f.scalar(f.argument("minlength"), DType::kI64), 0), -1);
    ValueId most = f.add_integer(f.amax(f.cat({self, least}, 0), {0}, false), 1);
    bins = f.value(kItem, {{"self", most}}, SymType{SymType::Kind::kInt, result.shape[0]});
  }
  ValueId all = f.node(aten::kArangeStartStep,
                       {{"start", int64_t{0}}, {"end", bins}, {"step", int64_t{1}}, {"dtype", DType::kI64}},
                       DType::kI64, result.shape);
  ValueId is_member = f.compare("eq", f.unsqueeze(self, 1), all);
  if (!f.has("weights")) return f.replace(f.sum(is_member, {0}, false, DType::kI64));
  ValueId weights = f.cast(f["weights"], result.dtype);
  ValueId counts = f.cast(is_member, result.dtype);
  return f.replace(f.sum(f.mul(counts, f.unsqueeze(weights, 1)), {0}, false));
}

constexpr RewriteRule kScatterRules[] = {
    {.op = "aten.index_add.default", .name = "decompose-index-add", .apply = write<decompose_index_add>},
    {.op = "aten.index_copy.default", .name = "decompose-index-copy", .apply = write<decompose_index_copy>},
    {.op = "aten.index_fill.int_Scalar", .name = "decompose-index-fill", .apply = write<decompose_index_fill>},
    {.op = "aten.scatter_reduce.two", .name = "decompose-scatter", .apply = write<decompose_scatter_reduce>},
    {.op = "aten.bincount.default", .name = "decompose-bincount", .apply = write<decompose_bincount>},
};

}  // namespace

std::span<const RewriteRule> scatter() { return kScatterRules; }

}  // namespace argosy::decompose
