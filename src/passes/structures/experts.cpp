#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/structures.h"

// Rows are sorted by expert, expert i's end at offs[i]. Rows behind the last expert's become zero.

namespace argosy {
namespace {

constexpr std::string_view kExpertsSchema =
    "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor";
constexpr std::string_view kExpertsOp = "transformers.grouped_mm_fallback.default";
constexpr std::string_view kExpertsName = "decompose-grouped-mm";

constexpr int64_t kAlignment = 16;  // bytes; what the kernel asks of the strides of both matrices

/// How many elements are missing to the next size that is aligned, whatever the order of dims in memory.
int64_t missing(SymExpr size, DType dtype) {
  int64_t elements = std::max<int64_t>(kAlignment / packed_bytes(dtype, 1).value_or(kAlignment), 1);
  std::optional<int64_t> known = size.as_integer();
  return known ? (elements - *known % elements) % elements : 0;
}

/// By PyTorch's own op, whose kernel leaves rows behind the last expert's as they are.
bool write_in_plain(AtenBuilder& f) {
  ValueId input = f["input"], weight = f["weight"];
  const DType dtype = f.dtype(input);
  SymExpr rows = f.size(input, 0), outer = f.size(weight, 2);
  int64_t inner_padding = missing(f.size(input, 1), dtype), outer_padding = missing(outer, dtype);
  if (inner_padding > 0) input = f.pad(input, {0, inner_padding});
  if (inner_padding > 0 || outer_padding > 0) weight = f.pad(weight, {0, outer_padding, 0, inner_padding});
  ValueId ends = f.cast(f["offs"], DType::kI32);
  ValueId product = f.node(aten::kInternalGroupedMm, {{"self", input}, {"mat2", weight}, {"offs", ends}}, dtype,
                           {rows, f.size(weight, 2)});
  if (outer_padding > 0) {
    product = f.value(aten::kSliceTensor, {{"self", product}, {"dim", int64_t{1}}, {"end", *outer.as_integer()}},
                      TensorType{dtype, {rows, outer}, {f.size(weight, 2), f.one()}});
  }
  ValueId numbers =
      f.node(aten::kArange, {{"end", f.as_argument(f.item(input, 0))}, {"device", Device{"cpu", std::nullopt}}},
             DType::kI64, {rows});
  ValueId is_used = f.unsqueeze(f.compare("lt", numbers, f.select(ends, 0, -1)), 1);
  return f.become(aten::kWhereScalarOther, {{"condition", is_used}, {"self", product}, {"other", int64_t{0}}});
}

/// Without a kernel that takes rows by groups: every expert multiplies all rows, and each row keeps the product of its
/// own expert.
bool write_in_portable(AtenBuilder& f) {
  bool is_plain = f.op() == "aten._grouped_mm.default";
  ValueId rows = f[is_plain ? "self" : "input"], weight = f[is_plain ? "mat2" : "weight"];
  if (is_plain && (!f.has("offs") || f.has("bias"))) return false;
  ValueId ends = f.cast(f["offs"], DType::kI64);
  if (f.rank(rows) != 2 || f.rank(weight) != 3 || f.rank(ends) != 1) return false;
  std::optional<int64_t> experts = f.size(weight, 0).as_integer();
  if (!experts) return false;
  SymExpr count = f.size(rows, 0);

  ValueId products = f.matmul(f.unsqueeze(rows, 0), weight);
  ValueId places = f.arange(count, DType::kI64, {rows});
  // How many experts' rows end before a row is the number of its own expert.
  ValueId expert = f.sum(f.compare("le", ends, f.unsqueeze(places, 1)), {1}, false, DType::kI64);
  ValueId is_used = f.unsqueeze(f.compare("lt", expert, Argument(*experts)), 1);
  expert = f.clamp(expert, std::nullopt, static_cast<double>(*experts - 1));
  ValueId own = f.node(aten::kIndexTensor, {{"self", products}, {"indices", ValueList{expert, places}}},
                       f.dtype(products), {count, f.size(weight, 2)});
  return f.replace(f.where(is_used, own, 0.0));
}

constexpr RewriteRule kExpertsPlain[] = {{.op = kExpertsOp, .name = kExpertsName, .apply = write<write_in_plain>}};
// PyTorch's own op for the same, which models may call as well.
constexpr RewriteRule kExpertsPortable[] = {
    {.op = kExpertsOp, .name = kExpertsName, .apply = write<write_in_portable>},
    {.op = "aten._grouped_mm.default", .name = kExpertsName, .apply = write<write_in_portable>},
};
constexpr Structure kExperts = {.schema = kExpertsSchema, .plain = kExpertsPlain, .portable = kExpertsPortable};

}  // namespace

const Structure& experts_structure() { return kExperts; }

}  // namespace argosy
