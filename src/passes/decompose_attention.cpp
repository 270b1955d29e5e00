#include <array>
#include <limits>

#include "base/text.h"
#include "passes/aten_schemas.h"
#include "passes/decomposition_families.h"
#include "passes/emitter.h"

namespace argosy {
namespace {

constexpr std::string_view kRepeat =
    "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> "
    "Tensor";
constexpr std::string_view kSdpa =
    "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
    "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor";
constexpr std::string_view kContiguous =
    "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)";
constexpr std::string_view kTranspose = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
constexpr std::string_view kMatmul = "aten::matmul(Tensor self, Tensor other) -> Tensor";
constexpr std::string_view kTanh = "aten::tanh(Tensor self) -> Tensor";
constexpr std::string_view kView = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)";
constexpr std::string_view kSoftmax = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";

/// The most negative finite number, as a mask of floats has it where a query may not look.
double lowest(DType dtype) {
  switch (dtype) {
    case DType::kF16: return -65504.0;
    case DType::kBF16: return -3.3895313892515355e38;
    case DType::kF64: return std::numeric_limits<double>::lowest();
    default: return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

/// argosy::attention(query, key, value, mask, sinks, scale, softcap, window), as its Python kernel computes it.
class Attention {
 public:
  explicit Attention(RuleContext& context) : emit_(context), arguments_(emit_.graph()[context.node].arguments) {
    query_ = std::get<ValueId>(arguments_[0].variant());
    query_type_ = emit_.type(query_);
  }

  Result<ValueId> decompose() {
    ARGOSY_TRY(ValueId key, repeated(std::get<ValueId>(arguments_[1].variant())));
    ARGOSY_TRY(ValueId value, repeated(std::get<ValueId>(arguments_[2].variant())));
    bool is_plain = number(6) == 0 && !arguments_[4].is<ValueId>();
    TensorType result = query_type_;
    result.shape[3] = emit_.type(value).shape[3];
    result.strides.clear();
    ValueId attended;
    if (is_plain) {
      ARGOSY_TRY(
          attended,
          emit_(kSdpa,
                {{"query", query_}, {"key", key}, {"value", value}, {"attn_mask", arguments_[3]}, {"scale", number(5)}},
                result));
    } else {
      ARGOSY_TRY(ValueId weights, weights_of(key));
      ARGOSY_TRY(attended, emit_(kMatmul, {{"self", weights}, {"other", value}}, result));
    }
    return emit_(kContiguous, {{"self", attended}}, result);
  }

 private:
  double number(size_t argument) const { return std::get<double>(arguments_[argument].variant()); }

  /// Each head of keys or values once for every query head that shares it.
  Result<ValueId> repeated(ValueId tensor) {
    TensorType type = emit_.type(tensor);
    std::optional<int64_t> heads = query_type_.shape[1].as_integer(), own = type.shape[1].as_integer();
    if (!heads || !own || *own == 0 || *heads % *own != 0) {
      return fail(ErrorCode::kUnsupportedFeature, "attention over a number of heads that is not known");
    }
    if (*heads == *own) return tensor;
    type.shape[1] = query_type_.shape[1];
    type.strides.clear();
    return emit_(kRepeat, {{"self", tensor}, {"repeats", *heads / *own}, {"dim", int64_t{1}}}, type);
  }

  Result<ValueId> weights_of(ValueId key) {
    TensorType key_type = emit_.type(key);
    std::vector<SymExpr> swapped = {key_type.shape[0], key_type.shape[1], key_type.shape[3], key_type.shape[2]};
    SymExpr length = key_type.shape[2], width = key_type.shape[3], one = emit_.number(1);
    SymExpr area = emit_.symbols().mul(length, width);
    TensorType turned{key_type.dtype, swapped, {emit_.symbols().mul(key_type.shape[1], area), area, one, width}};
    if (!key_type.strides.empty()) {
      turned.strides = key_type.strides;
      std::swap(turned.strides[2], turned.strides[3]);
    }
    ARGOSY_TRY(ValueId other, emit_(kTranspose, {{"self", key}, {"dim0", int64_t{-1}}, {"dim1", int64_t{-2}}}, turned));
    TensorType type{query_type_.dtype, {query_type_.shape[0], query_type_.shape[1], query_type_.shape[2], length}, {}};
    ARGOSY_TRY(ValueId scores, emit_(kMatmul, {{"self", query_}, {"other", other}}, type));
    ARGOSY_TRY(scores, emit_(aten::kMulScalar, {{"self", scores}, {"other", number(5)}}, type));
    if (double cap = number(6); cap != 0) {
      ARGOSY_TRY(scores, emit_(aten::kDivScalar, {{"self", scores}, {"other", cap}}, type));
      ARGOSY_TRY(scores, emit_(kTanh, {{"self", scores}}, type));
      ARGOSY_TRY(scores, emit_(aten::kMulScalar, {{"self", scores}, {"other", cap}}, type));
    }
    if (const ValueId* mask = arguments_[3].get_if<ValueId>()) {
      ARGOSY_TRY(scores, masked(scores, *mask));
    }
    if (const ValueId* sinks = arguments_[4].get_if<ValueId>()) return softmax_with_sinks(scores, *sinks);
    TensorType precise = type;
    precise.dtype = DType::kF32;
    ARGOSY_TRY(ValueId weights,
               emit_(kSoftmax, {{"self", scores}, {"dim", int64_t{-1}}, {"dtype", DType::kF32}}, precise));
    return emit_(aten::kTo, {{"self", weights}, {"dtype", type.dtype}}, type);
  }

  Result<ValueId> masked(ValueId scores, ValueId mask) {
    TensorType type = emit_.type(scores), mask_type = emit_.type(mask);
    if (mask_type.dtype != DType::kBool) return emit_(aten::kAddTensor, {{"self", scores}, {"other", mask}}, type);
    mask_type.strides.clear();
    ARGOSY_TRY(ValueId hidden, emit_(aten::kBitwiseNot, {{"self", mask}}, mask_type));
    return emit_(aten::kMaskedFill, {{"self", scores}, {"mask", hidden}, {"value", lowest(type.dtype)}}, type);
  }

  /// A sink is one more score of each head that takes part in the softmax and weighs no value.
  Result<ValueId> softmax_with_sinks(ValueId scores, ValueId sinks) {
    const TensorType type = emit_.type(scores);
    SymExpr one = emit_.number(1), length = type.shape[3], more = emit_.symbols().add(length, one);
    DType dtype = emit_.type(sinks).dtype;
    TensorType column{dtype, {one, type.shape[1], one, one}, {}};
    IntList as_column = {int64_t{1}, int64_t{-1}, int64_t{1}, int64_t{1}};
    ARGOSY_TRY(ValueId sink, emit_(kView, {{"self", sinks}, {"size", std::move(as_column)}}, column));
    ARGOSY_TRY(IntItem batch, emit_.size(scores, 0));
    ARGOSY_TRY(IntItem queries, emit_.size(scores, 2));
    TensorType wide{dtype, {type.shape[0], type.shape[1], type.shape[2], one}, {}};
    wide.strides = {emit_.number(0), one, emit_.number(0), one};
    ARGOSY_TRY(
        sink, emit_(aten::kExpand, {{"self", sink}, {"size", IntList{batch, int64_t{-1}, queries, int64_t{1}}}}, wide));
    TensorType joined = type;
    joined.shape[3] = more;
    ARGOSY_TRY(ValueId all, emit_(aten::kCat, {{"tensors", ValueList{scores, sink}}, {"dim", int64_t{-1}}}, joined));
    ARGOSY_TRY(ValueId weights, emit_(kSoftmax, {{"self", all}, {"dim", int64_t{-1}}}, joined));
    TensorType cut = type;
    SymContext& symbols = emit_.symbols();
    SymExpr row = more, head = symbols.mul(type.shape[2], row);
    cut.strides = {symbols.mul(type.shape[1], head), head, row, one};
    return emit_(aten::kSlice, {{"self", weights}, {"dim", int64_t{3}}, {"start", int64_t{0}}, {"end", int64_t{-1}}},
                 cut);
  }

  Emitter emit_;
  const std::vector<Argument> arguments_;
  ValueId query_;
  TensorType query_type_;
};

Result<bool> decompose_attention(RuleContext& context, const RewriteRule&) {
  ARGOSY_TRY(ValueId result, Attention(context).decompose());
  context.rewriter.replace(context.node, std::array{result});
  return true;
}

constexpr RewriteRule kRules[] = {
    {.op = "argosy.attention.default", .name = "decompose-attention", .apply = decompose_attention}};

}  // namespace

std::span<const RewriteRule> attention_decompositions() { return kRules; }

}  // namespace argosy
