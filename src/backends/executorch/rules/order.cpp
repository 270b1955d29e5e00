#include "backends/executorch/rules/families.h"
#include "backends/executorch/rules/formula.h"
#include "backends/executorch/rules/schemas.h"
#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

/// Sorted is the top of all. That kernel puts equal numbers in any order: whole ones are made different by their
/// places, as long as they are far from the limits of 64 bits; real ones that are equal may change places.
bool decompose_sort(Formula& f) {
  ValueId x = f["self"];
  const TensorType values_type = f.match.result(0), indices_type = f.match.result(1);
  if (f.rank(x) == 0) return f.replace({x, f.scalar(int64_t{0}, DType::kI64)});
  std::optional<size_t> dim = f.match.dim("dim", f.rank(x));
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
  std::vector<ValueId> sorted = f.nodes(schemas::kTopk,
                                        {{"self", keys},
                                         {"k", f.argument(f.item(f.size(x, at), {x}))},
                                         {"dim", at},
                                         {"largest", is_descending},
                                         {"sorted", true}},
                                        {keys_type, {DType::kI64, f.shape(x), {}}});
  if (!is_whole) return f.replace({sorted[0], sorted[1]});
  ValueId values = f.node(schemas::kGather, {{"self", x}, {"dim", at}, {"index", sorted[1]}}, f.dtype(x), f.shape(x));
  return f.replace({values, sorted[1]});
}

bool decompose_topk(Formula& f) {
  ValueId x = f["self"];
  if (f.dtype(x) != DType::kBool) return false;
  const TensorType values = f.match.result(0), indices = f.match.result(1);
  std::vector<ValueId> found = f.nodes(schemas::kTopk,
                                       {{"self", f.cast(x, DType::kU8)},
                                        {"k", f.match["k"]},
                                        {"dim", f.match["dim"]},
                                        {"largest", f.match["largest"]},
                                        {"sorted", f.match["sorted"]}},
                                       {{DType::kU8, values.shape, {}}, indices});
  return f.replace({f.cast(found[0], DType::kBool), found[1]});
}

/// The k-th smallest number, or the lower median.
bool decompose_kth(Formula& f) {
  ValueId x = f["self"];
  if (f.rank(x) == 0 || f.match.output_count() != 2) return false;
  std::optional<size_t> dim = f.match.dim("dim", f.rank(x));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  std::optional<int64_t> size = f.size(x, at).as_integer();
  int64_t k = 0;
  if (f.match.has("k")) {
    std::optional<int64_t> given = f.match.integer("k");
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
      f.nodes(schemas::kTopk, {{"self", x}, {"k", k}, {"dim", at}, {"largest", false}, {"sorted", true}},
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

std::span<const RewriteRule> order_rules() { return kRules; }

}  // namespace argosy::executorch
