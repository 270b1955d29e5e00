#pragma once

#include <string_view>

/// Schemas of ops that several files of rules emit, as torch has them, beside those of passes/aten_schemas.h.
namespace argosy::executorch::schemas {

inline constexpr std::string_view kAbs = "aten::abs(Tensor self) -> Tensor";
inline constexpr std::string_view kAmax = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAmin = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAnyDim = "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAvgPool2d =
    "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
    "count_include_pad=True, int? divisor_override=None) -> Tensor";
inline constexpr std::string_view kBmm = "aten::bmm(Tensor self, Tensor mat2) -> Tensor";
inline constexpr std::string_view kConv2d =
    "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
    "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor";
inline constexpr std::string_view kConvolution =
    "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
    "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor";
inline constexpr std::string_view kErf = "aten::erf(Tensor self) -> Tensor";
inline constexpr std::string_view kExp = "aten::exp(Tensor self) -> Tensor";
inline constexpr std::string_view kExpm1 = "aten::expm1(Tensor self) -> Tensor";
inline constexpr std::string_view kFloor = "aten::floor(Tensor self) -> Tensor";
inline constexpr std::string_view kGather =
    "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor";
inline constexpr std::string_view kIndex = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor";
inline constexpr std::string_view kIndexPut =
    "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor";
inline constexpr std::string_view kIndexSelect = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor";
inline constexpr std::string_view kIsInf = "aten::isinf(Tensor self) -> Tensor";
inline constexpr std::string_view kIsNan = "aten::isnan(Tensor self) -> Tensor";
inline constexpr std::string_view kLinear = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";
inline constexpr std::string_view kLog = "aten::log(Tensor self) -> Tensor";
inline constexpr std::string_view kLog1p = "aten::log1p(Tensor self) -> Tensor";
inline constexpr std::string_view kLogicalNot = "aten::logical_not(Tensor self) -> Tensor";
inline constexpr std::string_view kMatmul = "aten::matmul(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMaximum = "aten::maximum(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMaxPool2d =
    "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor";
inline constexpr std::string_view kMinimum = "aten::minimum(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMm = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
inline constexpr std::string_view kNeg = "aten::neg(Tensor self) -> Tensor";
inline constexpr std::string_view kRand =
    "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kRandn =
    "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kReciprocal = "aten::reciprocal(Tensor self) -> Tensor";
inline constexpr std::string_view kRelu = "aten::relu(Tensor self) -> Tensor";
inline constexpr std::string_view kRsqrt = "aten::rsqrt(Tensor self) -> Tensor";
inline constexpr std::string_view kScatterAdd =
    "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
inline constexpr std::string_view kSign = "aten::sign(Tensor self) -> Tensor";
inline constexpr std::string_view kSoftmax =
    "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kTanh = "aten::tanh(Tensor self) -> Tensor";
inline constexpr std::string_view kTopk =
    "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
    "indices)";
inline constexpr std::string_view kTrunc = "aten::trunc(Tensor self) -> Tensor";
inline constexpr std::string_view kVar =
    "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kWhere = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor";

}  // namespace argosy::executorch::schemas
