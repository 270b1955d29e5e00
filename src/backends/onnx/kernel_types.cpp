#include "backends/onnx/kernel_types.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

constexpr uint64_t bit(DType dtype) { return uint64_t{1} << static_cast<unsigned>(dtype); }
template <class... D>
constexpr uint64_t bits(D... dtypes) {
  return (bit(dtypes) | ...);
}

using enum DType;
// f16 is in every set of floats: ONNX Runtime widens it by itself where a kernel lacks it.
constexpr uint64_t kHalf = bits(kF16);
constexpr uint64_t kFloats = kHalf | bits(kF32, kF64);
constexpr uint64_t kSingle = kHalf | bits(kF32);
constexpr uint64_t kFloatsAndInts = kFloats | bits(kI32, kI64);
constexpr uint64_t kInts = bits(kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64);

// Sorted by op. What tests/ops finds out about a kernel is written down here.
constexpr auto kRows = std::to_array<KernelTypes>({
    {"Add", kFloatsAndInts},
    {"ArgMax", kFloats | bits(kI32, kI8, kU8), 0, 1, false},
    {"ArgMin", kFloats | bits(kI32, kI8, kU8), 0, 1, false},
    {"AveragePool", kSingle},
    {"BatchNormalization", kFloats},
    {"BitwiseAnd", kInts},
    {"BitwiseNot", kInts},
    {"BitwiseOr", kInts},
    {"BitwiseXor", kInts},
    {"Ceil", kFloats},
    {"Clip", kFloats | bits(kI32, kI64, kI8, kU8, kU32, kU64)},
    {"Conv", kSingle},
    {"ConvTranspose", kSingle},
    {"Cos", kFloats},
    {"CumSum", kFloatsAndInts, 0, 1},
    {"Div", kFloatsAndInts},
    {"Einsum", kFloatsAndInts},
    {"Elu", kSingle},
    {"Equal", kFloatsAndInts | bits(kBool, kU8, kI8), 0, 0, false},
    {"Erf", kSingle},
    {"Exp", kFloats},
    {"Floor", kFloats},
    {"Gelu", kSingle},
    {"Gemm", kFloats},
    {"Greater", kFloatsAndInts, 0, 0, false},
    {"GreaterOrEqual", kFloatsAndInts, 0, 0, false},
    {"GridSample", kSingle},
    {"HardSigmoid", kSingle},
    {"HardSwish", kSingle},
    {"InstanceNormalization", kSingle},
    {"IsInf", kFloats, 0, 1, false},
    {"IsNaN", kFloats, 0, 1, false},
    {"LayerNormalization", kFloats},
    {"LeakyRelu", kSingle},
    {"Less", kFloatsAndInts, 0, 0, false},
    {"LessOrEqual", kFloatsAndInts, 0, 0, false},
    {"Log", kFloats},
    {"LogSoftmax", kFloats},
    {"MatMul", kFloatsAndInts | bits(kU32, kU64)},
    {"Max", kFloatsAndInts | bits(kU32, kU64)},
    {"MaxPool", kFloats},
    {"Min", kFloatsAndInts | bits(kU32, kU64)},
    {"Mod", kFloats | kInts},
    {"Mul", kFloatsAndInts},
    {"Neg", kFloatsAndInts | bits(kI8)},
    {"NonZero", kSingle | bits(kBool, kI32, kI64, kU8), 0, 1, false},
    {"PRelu", kSingle},
    {"Pow", kFloatsAndInts, 0, 0},
    {"Range", kFloats | bits(kI16, kI32, kI64)},
    {"Reciprocal", kFloats},
    {"ReduceL1", kSingle | bits(kI32), 0, 1},
    {"ReduceL2", kSingle | bits(kI32), 0, 1},
    {"ReduceLogSumExp", kFloats | bits(kI32), 0, 1},
    {"ReduceMax", kFloatsAndInts | bits(kI8, kU8), 0, 1},
    {"ReduceMean", kFloats | bits(kI32), 0, 1},
    {"ReduceMin", kFloatsAndInts | bits(kI8, kU8), 0, 1},
    {"ReduceProd", kSingle | bits(kI32, kI64), 0, 1},
    {"ReduceSum", kFloatsAndInts, 0, 1},
    {"Relu", kFloats | bits(kI32, kI8)},
    {"Resize", kSingle | bits(kI32, kI8, kU8), 0, 1},
    {"Round", kFloats},
    {"Sigmoid", kFloats},
    {"Sin", kFloats},
    {"Softmax", kFloats},
    {"Softplus", kFloats},
    {"Sqrt", kFloats},
    {"Sub", kFloatsAndInts},
    {"Sum", kFloats},
    {"Tan", kSingle},
    {"Tanh", kFloats},
    {"TopK", kFloatsAndInts, 0, 1},
    {"Trilu", kFloats | bits(kBool, kI64), 0, 1},
    {"Unique", kFloats | bits(kI8, kI64), 0, 1},
    {"Where", kFloatsAndInts | bits(kU8), 1, 2},
});

constexpr std::array kBoolResults = {
    "And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"};
constexpr std::array kIntResults = {"ArgMax", "ArgMin", "NonZero", "Shape", "Size", "SequenceLength"};

template <size_t N>
bool holds(const std::array<const char*, N>& names, std::string_view op) {
  return std::ranges::any_of(names, [&](const char* name) { return op == name; });
}

}  // namespace

const KernelTypes* kernel_types(std::string_view op) {
  static_assert(std::ranges::is_sorted(kRows, {}, &KernelTypes::op));
  const auto* found = std::ranges::lower_bound(kRows, op, {}, &KernelTypes::op);
  return found != kRows.end() && found->op == op ? found : nullptr;
}

DType kernel_type(const KernelTypes& types, DType dtype, bool keeps_bf16) {
  if ((types.taken & bit(dtype)) != 0 || (dtype == kBF16 && keeps_bf16)) return dtype;
  bool is_real = kind_of(dtype) == DTypeKind::kFloat;
  bool is_unsigned = kind_of(dtype) == DTypeKind::kUnsigned;
  // The nearest type that holds all values of `dtype`.
  for (DType wider : {kI32, kI64, kF32, kF64}) {
    if ((types.taken & bit(wider)) == 0) continue;
    bool is_real_too = kind_of(wider) == DTypeKind::kFloat;
    if (is_real && !is_real_too) continue;
    int digits = wider == kF32 ? 24 : wider == kF64 ? 53 : bits_of(wider) - 1;
    if (is_real || bits_of(dtype) - (is_unsigned ? 0 : 1) <= digits) return wider;
  }
  // No type holds all values of 64 bits: the one that holds most.
  for (DType wide : {kI64, kF64, kF32, kI32}) {
    if ((types.taken & bit(wide)) != 0) return wide;
  }
  return dtype;
}

DType result_type(std::string_view op, std::span<const DType> inputs, const std::vector<Attribute>& attributes) {
  if (holds(kBoolResults, op)) return kBool;
  if (holds(kIntResults, op)) return kI64;
  ARGOSY_CHECK(op != "Cast" && op != "ConstantOfShape", format("{} is made by a function of its own", op));
  if (op == "DynamicQuantizeLinear") return kU8;
  if (op == "MatMulInteger") return kI32;
  if (op == "Where" || op == "OneHot") return inputs[op == "Where" ? 1 : 2];
  if (op == "EyeLike" || op == "RandomNormalLike" || op == "RandomUniformLike") {
    for (const Attribute& attribute : attributes) {
      if (attribute.name == "dtype") {
        for (DType dtype : {kBool, kI32, kI64, kF16, kF32, kF64}) {
          if (onnx_type(dtype) == std::get<int64_t>(attribute.value)) return dtype;
        }
      }
    }
  }
  ARGOSY_CHECK(!inputs.empty(), format("{} without inputs has no type", op));
  return inputs.front();
}

int32_t onnx_type(DType dtype) {
  switch (dtype) {
    case kF32: return 1;
    case kU8: return 2;
    case kI8: return 3;
    case kU16: return 4;
    case kI16: return 5;
    case kI32: return 6;
    case kI64: return 7;
    case kBool: return 9;
    case kF16: return 10;
    case kF64: return 11;
    case kU32: return 12;
    case kU64: return 13;
    case kC64: return 14;
    case kC128: return 15;
    case kBF16: return 16;
    case kF8E4M3FN: return 17;
    case kF8E4M3FNUZ: return 18;
    case kF8E5M2: return 19;
    case kF8E5M2FNUZ: return 20;
    case kU4: return 21;
    case kI4: return 22;
    default: return 0;
  }
}

}  // namespace argosy::onnx
