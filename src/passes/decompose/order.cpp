#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// Sorting is topk of all elements. That kernel puts equal numbers in any order: integers are made different by their
/// places, as long as they are far from the limits of 64 bits; equal floats may change places.
bool decompose_sort(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType values_type = f.result(0), indices_type = f.result(1);
  if (f.rank(x) == 0) return f.replace({x, f.scalar(int64_t{0}, DType::kI64)});
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  bool is_descending = f.flag("descending"), is_whole = kind_of(f.dtype(x)) != DTypeKind::kFloat;
  ValueId keys = x;
  if (is_whole) {
    constexpr int64_t kPlaces = int64_t{1} << 31;
    ValueId places = f.arange(f.size(x, at), DType::kI64, {x});
    for (size_t i = *dim + 1; i < f.rank(x); ++i) places = f.unsqueeze(places, -1);
    keys = f.mul_integer(f.cast(x, DType::kI64), kPlaces);
    keys = is_descending ? f.sub(keys, places) : f.add(keys, places);
  }
  TensorType keys_type{f.dtype(keys), f.shape(x), {}};
  std::vector<ValueId> sorted = f.nodes(aten::kTopk,
                                        {{"self", keys},
                                         {"k", f.as_argument(f.item(f.size(x, at), {x}))},
                                         {"dim", at},
                                         {"largest", is_descending},
                                         {"sorted", true}},
                                        {keys_type, {DType::kI64, f.shape(x), {}}});
  if (!is_whole) return f.replace({sorted[0], sorted[1]});
  ValueId values = f.node(aten::kGather, {{"self", x}, {"dim", at}, {"index", sorted[1]}}, f.dtype(x), f.shape(x));
  return f.replace({values, sorted[1]});
}

/// The k-th smallest number, or the lower median.
bool decompose_kth(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.rank(x) == 0 || f.output_count() != 2) return false;
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  std::optional<int64_t> size = f.size(x, at).as_integer();
  int64_t k = 0;
  if (f.knows("k")) {
    std::optional<int64_t> given = f.integer("k");
    if (!given) return false;
    k = *given;
  } else if (size) {
    k = (*size - 1) / 2 + 1;
  } else {
    return false;
  }
  TensorType top{f.dtype(x), f.shape(x), {}};
  top.shape[*dim] = f.integer(k);
  std::vector<ValueId> sorted =
      f.nodes(aten::kTopk, {{"self", x}, {"k", k}, {"dim", at}, {"largest", false}, {"sorted", true}},
              {top, {DType::kI64, top.shape, {}}});
  std::vector<ValueId> results;
  for (ValueId each : sorted) {
    ValueId last = f.select(each, at, k - 1);
    results.push_back(f.flag("keepdim") ? f.unsqueeze(last, at) : last);
  }
  return f.replace(results);
}

ValueId flat(AtenBuilder& f, ValueId x) {
  return f.reshape(x, {f.rank(x) == 0 ? f.one() : f.symbols().mul(f.shape(x))});
}

ValueId cumsum(AtenBuilder& f, ValueId x) {
  return f.node(aten::kCumsum, {{"self", f.cast(x, DType::kI64)}, {"dim", int64_t{0}}}, DType::kI64, f.shape(x));
}

/// Index i, repeats[i] times: the index at a place is the number of repeats that end before it.
bool decompose_repeats(AtenBuilder& f) {
  const TensorType result = f.result();
  ValueId ends = cumsum(f, f["repeats"]);
  Argument count = f.argument("output_size");
  if (!f.has("output_size")) {
    count = f.value(aten::kItem, {{"self", f.sum(f["repeats"], {0}, false, DType::kI64)}},
                    SymType{SymType::Kind::kInt, result.shape[0]});
  }
  ValueId places = f.node(aten::kArangeStartStep,
                          {{"start", int64_t{0}}, {"end", count}, {"step", int64_t{1}}, {"dtype", DType::kI64}},
                          DType::kI64, result.shape);
  return f.replace(f.sum(f.compare("le", ends, f.unsqueeze(places, 1)), {1}, false, DType::kI64));
}

/// Elements, or slices of a dim, each as often as its number says.
bool decompose_repeat_interleave(AtenBuilder& f) {
  ValueId self = f["self"], repeats = f["repeats"];
  const TensorType result = f.result();
  if (!f.has("dim")) self = flat(f, self);
  std::optional<size_t> dim = f.has("dim") ? f.dim("dim", f.rank(self)) : std::optional<size_t>(0);
  if (!dim || f.rank(self) == 0) return false;
  auto at = static_cast<int64_t>(*dim);
  if (f.rank(repeats) == 0 || f.size(repeats, 0).as_integer() == 1) {
    repeats = f.expand(f.reshape(repeats, {f.one()}), {f.size(self, at)}, {self});
  }
  ValueId index =
      f.node(aten::kRepeatInterleaveTensor, {{"repeats", repeats}, {"output_size", f.argument("output_size")}},
             DType::kI64, {result.shape[*dim]});
  return f.replace(f.index_select(self, at, index));
}

/// Elements that differ from the one before; for every element the place of its own among these; and how often each
/// follows itself.
bool decompose_unique_consecutive(AtenBuilder& f) {
  if (f.has("dim")) return false;
  ValueId x = flat(f, f["self"]);
  const SymExpr count = f.result().shape[0], fewer = f.symbols().sub(f.size(x, 0), f.one());
  ValueId next = f.slice(x, 0, 1, fewer);
  ValueId is_new = f.compare("ne", next, f.slice(x, 0, 0, fewer));
  is_new = f.cat({f.full({f.one()}, true, DType::kBool, {}), is_new}, 0);
  ValueId values = f.node(aten::kMaskedSelect, {{"self", x}, {"mask", is_new}}, f.dtype(x), {count});
  ValueId inverse = f.reshape(f.add_integer(cumsum(f, is_new), -1), f.shape(f["self"]), {f["self"]});
  // The first place of each, and one behind the last.
  ValueId starts = f.squeeze(f.node(aten::kNonzero, {{"self", is_new}}, DType::kI64, {count, f.one()}), 1);
  ValueId end = f.full({f.one()}, f.as_argument(f.item(f.size(x, 0), {x, f["self"]})), DType::kI64, {});
  ValueId bounds = f.cat({f.slice(starts, 0, 1, f.symbols().sub(count, f.one())), end}, 0);
  return f.replace({values, inverse, f.sub(bounds, starts)});
}

/// Sorted, equal elements follow each other.
bool decompose_unique(AtenBuilder& f) {
  constexpr std::string_view kUnique = aten::kUniqueConsecutive;
  constexpr std::string_view kScatter = aten::kScatterSrc;
  ValueId x = flat(f, f["self"]);
  const SymExpr count = f.result().shape[0];
  const TensorType places{DType::kI64, f.shape(x), {}};
  std::vector<ValueId> sorted = f.nodes(aten::kSort, {{"self", x}}, {{f.dtype(x), f.shape(x), {}}, places});
  std::vector<ValueId> found =
      f.nodes(kUnique, {{"self", sorted[0]}, {"return_inverse", true}, {"return_counts", true}},
              {{f.dtype(x), {count}, {}}, places, {DType::kI64, {count}, {}}});
  ValueId zeros = f.full(f.shape(x), int64_t{0}, DType::kI64, {x});
  ValueId inverse = f.node(kScatter, {{"self", zeros}, {"dim", int64_t{0}}, {"index", sorted[1]}, {"src", found[1]}},
                           DType::kI64, f.shape(x));
  return f.replace({found[0], f.reshape(inverse, f.shape(f["self"]), {f["self"]}), found[2]});
}

constexpr RewriteRule kOrderRules[] = {
    {.op = "aten.sort.default", .name = "decompose-sort", .apply = write<decompose_sort>},
    {.op = "aten.sort.stable", .name = "decompose-sort", .apply = write<decompose_sort>},
    {.op = "aten.repeat_interleave.Tensor", .name = "decompose-repeats", .apply = write<decompose_repeats>},
    {.op = "aten.repeat_interleave.self_Tensor",
     .name = "decompose-repeats",
     .apply = write<decompose_repeat_interleave>},
    {.op = "aten._unique2.default", .name = "decompose-unique", .apply = write<decompose_unique>},
    {.op = "aten.unique_consecutive.default", .name = "decompose-unique", .apply = write<decompose_unique_consecutive>},
    {.op = "aten.kthvalue.default", .name = "decompose-kth", .apply = write<decompose_kth>},
    {.op = "aten.median.dim", .name = "decompose-kth", .apply = write<decompose_kth>},
};

}  // namespace

std::span<const RewriteRule> order() { return kOrderRules; }

}  // namespace argosy::decompose
