#pragma once

#include <string_view>

/// Schemas of ops that rules emit, as torch has them.
namespace argosy::aten {

inline constexpr std::string_view kAbs = "aten::abs(Tensor self) -> Tensor";
inline constexpr std::string_view kAddScalar = "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kAddTensor =
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kAll = "aten::all(Tensor self) -> Tensor";
inline constexpr std::string_view kAmax = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAmin = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAny = "aten::any(Tensor self) -> Tensor";
inline constexpr std::string_view kAnyDim = "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kArange =
    "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor";
inline constexpr std::string_view kAvgPool2d =
    "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
    "count_include_pad=True, int? divisor_override=None) -> Tensor";
inline constexpr std::string_view kBitwiseAnd = "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBitwiseNot = "aten::bitwise_not(Tensor self) -> Tensor";
inline constexpr std::string_view kBitwiseOr = "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBitwiseXor = "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBmm = "aten::bmm(Tensor self, Tensor mat2) -> Tensor";
inline constexpr std::string_view kCat = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor";
inline constexpr std::string_view kClamp = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor";
inline constexpr std::string_view kClampTensor =
    "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor";
inline constexpr std::string_view kConstantPad =
    "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor";
inline constexpr std::string_view kConv2d =
    "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
    "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor";
inline constexpr std::string_view kConvolution =
    "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
    "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor";
inline constexpr std::string_view kCos = "aten::cos(Tensor self) -> Tensor";
inline constexpr std::string_view kDivScalar = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kDivScalarMode =
    "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor";
inline constexpr std::string_view kDivTensor = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kDivTensorMode =
    "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor";
inline constexpr std::string_view kEqTensor = "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kErf = "aten::erf(Tensor self) -> Tensor";
inline constexpr std::string_view kExp = "aten::exp(Tensor self) -> Tensor";
inline constexpr std::string_view kExpand =
    "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)";
inline constexpr std::string_view kExpm1 = "aten::expm1(Tensor self) -> Tensor";
inline constexpr std::string_view kFloor = "aten::floor(Tensor self) -> Tensor";
inline constexpr std::string_view kFull =
    "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor";
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
inline constexpr std::string_view kMaskedFill =
    "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor";
inline constexpr std::string_view kMatmul = "aten::matmul(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMaximum = "aten::maximum(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMaxPool2d =
    "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor";
inline constexpr std::string_view kMeanDim =
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kMinimum = "aten::minimum(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMm = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
inline constexpr std::string_view kMulScalar = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kMulTensor = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kNeg = "aten::neg(Tensor self) -> Tensor";
inline constexpr std::string_view kPermute = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)";
inline constexpr std::string_view kRand =
    "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kRandn =
    "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kReciprocal = "aten::reciprocal(Tensor self) -> Tensor";
inline constexpr std::string_view kRelu = "aten::relu(Tensor self) -> Tensor";
inline constexpr std::string_view kRepeat = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor";
inline constexpr std::string_view kReshape = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)";
inline constexpr std::string_view kRsqrt = "aten::rsqrt(Tensor self) -> Tensor";
inline constexpr std::string_view kScatterAdd =
    "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
inline constexpr std::string_view kSelect = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)";
inline constexpr std::string_view kSigmoid = "aten::sigmoid(Tensor self) -> Tensor";
inline constexpr std::string_view kSign = "aten::sign(Tensor self) -> Tensor";
inline constexpr std::string_view kSin = "aten::sin(Tensor self) -> Tensor";
inline constexpr std::string_view kSlice =
    "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)";
inline constexpr std::string_view kSoftmax =
    "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kSort =
    "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)";
inline constexpr std::string_view kSortStable =
    "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
    "indices)";
inline constexpr std::string_view kSplitWithSizes =
    "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]";
inline constexpr std::string_view kSqrt = "aten::sqrt(Tensor self) -> Tensor";
inline constexpr std::string_view kSqueeze = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)";
inline constexpr std::string_view kSubTensor =
    "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kSumDim =
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kTanh = "aten::tanh(Tensor self) -> Tensor";
inline constexpr std::string_view kTo =
    "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)";
inline constexpr std::string_view kTopk =
    "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
    "indices)";
inline constexpr std::string_view kTrunc = "aten::trunc(Tensor self) -> Tensor";
inline constexpr std::string_view kUnsqueeze = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)";
inline constexpr std::string_view kVar =
    "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kWhere = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor";

}  // namespace argosy::aten
