#include <algorithm>
#include <array>

#include "passes/aten_schemas.h"
#include "passes/decomposition_families.h"
#include "passes/emitter.h"

namespace argosy {
namespace {

constexpr std::string_view kGroupedMm =
    "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
    "Tensor";
constexpr std::string_view kArange =
    "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
constexpr std::string_view kLess = "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor";
constexpr std::string_view kWhere = "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor";

constexpr int64_t kAlignment = 16;  // bytes; what the kernel asks of the strides of both matrices

/// How many elements are missing to the next size that is aligned, whatever the order of dims in memory.
int64_t missing(SymExpr size, DType dtype) {
  int64_t elements = std::max<int64_t>(kAlignment / packed_bytes(dtype, 1).value_or(kAlignment), 1);
  std::optional<int64_t> known = size.as_integer();
  return known ? (elements - *known % elements) % elements : 0;
}

// Rows of `input` are sorted by expert, expert i's end at offs[i]. The kernel leaves rows behind the last one as they
// are, transformers' op sets them to zero.
Result<bool> decompose_grouped_mm(RuleContext& context, const RewriteRule&) {
  Emitter emit(context);
  const std::vector<Argument> arguments = emit.graph()[context.node].arguments;
  auto input = std::get<ValueId>(arguments[0].variant()), weight = std::get<ValueId>(arguments[1].variant()),
       ends = std::get<ValueId>(arguments[2].variant());
  const TensorType input_type = emit.type(input), weight_type = emit.type(weight), ends_type = emit.type(ends);
  SymExpr rows = input_type.shape[0], inner = input_type.shape[1], outer = weight_type.shape[2];
  DType dtype = input_type.dtype;

  int64_t inner_padding = missing(inner, dtype), outer_padding = missing(outer, dtype);
  SymContext& symbols = emit.symbols();
  SymExpr padded_inner = symbols.add(inner, emit.number(inner_padding)),
          padded_outer = symbols.add(outer, emit.number(outer_padding));
  if (inner_padding > 0) {
    ARGOSY_TRY(input, emit(aten::kConstantPad, {{"self", input}, {"pad", IntList{int64_t{0}, inner_padding}}},
                           TensorType{dtype, {rows, padded_inner}, {}}));
  }
  if (inner_padding > 0 || outer_padding > 0) {
    ARGOSY_TRY(weight, emit(aten::kConstantPad,
                            {{"self", weight}, {"pad", IntList{int64_t{0}, outer_padding, int64_t{0}, inner_padding}}},
                            TensorType{dtype, {weight_type.shape[0], padded_inner, padded_outer}, {}}));
  }
  if (ends_type.dtype != DType::kI32) {
    ARGOSY_TRY(ends,
               emit(aten::kTo, {{"self", ends}, {"dtype", DType::kI32}}, TensorType{DType::kI32, ends_type.shape, {}}));
  }
  ARGOSY_TRY(ValueId product, emit(kGroupedMm, {{"self", input}, {"mat2", weight}, {"offs", ends}},
                                   TensorType{dtype, {rows, padded_outer}, {}}));
  if (outer_padding > 0) {
    ARGOSY_TRY(product, emit(aten::kSlice, {{"self", product}, {"dim", int64_t{1}}, {"end", *outer.as_integer()}},
                             TensorType{dtype, {rows, outer}, {padded_outer, emit.number(1)}}));
  }
  ARGOSY_TRY(IntItem row_count, emit.size(input, 0));
  Argument end = std::visit([](auto item) { return Argument(item); }, row_count);
  ARGOSY_TRY(ValueId numbers, emit(kArange, {{"end", std::move(end)}, {"device", Device{"cpu", std::nullopt}}},
                                   TensorType{DType::kI64, {rows}, {}}));
  ARGOSY_TRY(ValueId last, emit(aten::kSelect, {{"self", ends}, {"dim", int64_t{0}}, {"index", int64_t{-1}}},
                                TensorType{DType::kI32, {}, {}}));
  ARGOSY_TRY(ValueId is_used, emit(kLess, {{"self", numbers}, {"other", last}}, TensorType{DType::kBool, {rows}, {}}));
  ARGOSY_TRY(is_used, emit(aten::kUnsqueeze, {{"self", is_used}, {"dim", int64_t{1}}},
                           TensorType{DType::kBool, {rows, emit.number(1)}, {}}));
  ARGOSY_TRY(ValueId result, emit(kWhere, {{"condition", is_used}, {"self", product}, {"other", int64_t{0}}},
                                  TensorType{dtype, {rows, outer}, {}}));
  context.rewriter.replace(context.node, std::array{result});
  return true;
}

constexpr RewriteRule kRules[] = {
    {.op = "transformers.grouped_mm_fallback.default", .name = "decompose-grouped-mm", .apply = decompose_grouped_mm}};

}  // namespace

std::span<const RewriteRule> expert_decompositions() { return kRules; }

}  // namespace argosy
