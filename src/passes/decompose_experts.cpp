#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decomposition_families.h"

namespace argosy {
namespace {

constexpr int64_t kAlignment = 16;  // bytes; what the kernel asks of the strides of both matrices

/// How many elements are missing to the next size that is aligned, whatever the order of dims in memory.
int64_t missing(SymExpr size, DType dtype) {
  int64_t elements = std::max<int64_t>(kAlignment / packed_bytes(dtype, 1).value_or(kAlignment), 1);
  std::optional<int64_t> known = size.as_integer();
  return known ? (elements - *known % elements) % elements : 0;
}

// Rows of `input` are sorted by expert, expert i's end at offs[i]. The kernel leaves rows behind the last one as they
// are, transformers' op sets them to zero.
bool decompose_grouped_mm(AtenBuilder& f) {
  auto operand = [&](size_t index) { return std::get<ValueId>(f.arguments()[index].variant()); };
  ValueId input = operand(0), weight = operand(1);
  const DType dtype = f.dtype(input);
  SymExpr rows = f.size(input, 0), outer = f.size(weight, 2);
  int64_t inner_padding = missing(f.size(input, 1), dtype), outer_padding = missing(outer, dtype);
  if (inner_padding > 0) input = f.pad(input, {0, inner_padding});
  if (inner_padding > 0 || outer_padding > 0) weight = f.pad(weight, {0, outer_padding, 0, inner_padding});
  ValueId ends = f.cast(operand(2), DType::kI32);
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

constexpr RewriteRule kRules[] = {{.op = "transformers.grouped_mm_fallback.default",
                                   .name = "decompose-grouped-mm",
                                   .apply = write<decompose_grouped_mm>}};

}  // namespace

std::span<const RewriteRule> expert_decompositions() { return kRules; }

}  // namespace argosy
