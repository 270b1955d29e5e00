#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// Sorted is the top of all. That kernel puts equal numbers in any order: whole ones are made different by their
/// places, as long as they are far from the limits of 64 bits; real ones that are equal may change places.
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

bool decompose_topk(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.dtype(x) != DType::kBool) return false;
  const TensorType values = f.result(0), indices = f.result(1);
  std::vector<ValueId> found = f.nodes(aten::kTopk,
                                       {{"self", f.cast(x, DType::kU8)},
                                        {"k", f.argument("k")},
                                        {"dim", f.argument("dim")},
                                        {"largest", f.argument("largest")},
                                        {"sorted", f.argument("sorted")}},
                                       {{DType::kU8, values.shape, {}}, indices});
  return f.replace({f.cast(found[0], DType::kBool), found[1]});
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

constexpr RewriteRule kRules[] = {
    {.op = "aten.sort.default", .name = "decompose-sort", .apply = write<decompose_sort>},
    {.op = "aten.sort.stable", .name = "decompose-sort", .apply = write<decompose_sort>},
    {.op = "aten.topk.default", .name = "decompose-topk", .apply = write<decompose_topk>},
    {.op = "aten.kthvalue.default", .name = "decompose-kth", .apply = write<decompose_kth>},
    {.op = "aten.median.dim", .name = "decompose-kth", .apply = write<decompose_kth>},
};

}  // namespace

std::span<const RewriteRule> order() { return kRules; }

}  // namespace argosy::decompose
