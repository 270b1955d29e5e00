#pragma once

#include <string_view>

// Written by tools/write_aten_schemas.py, which also adds ops.

/// Schemas of ops that rules add, as torch has them.
namespace argosy::aten {

inline constexpr std::string_view kAbs = "aten::abs(Tensor self) -> Tensor";
inline constexpr std::string_view kAcos = "aten::acos(Tensor self) -> Tensor";
inline constexpr std::string_view kAcosh = "aten::acosh(Tensor self) -> Tensor";
inline constexpr std::string_view kAdaptiveAvgPool2d =
    "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor";
inline constexpr std::string_view kAddScalar = "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kAddTensor =
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kAll = "aten::all(Tensor self) -> Tensor";
inline constexpr std::string_view kAlphaDropout = "aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor";
inline constexpr std::string_view kAmax = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAmin = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAny = "aten::any(Tensor self) -> Tensor";
inline constexpr std::string_view kAnyDim = "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAnyDims =
    "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kArange =
    "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kArangeStartStep =
    "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor";
inline constexpr std::string_view kArgmax = "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kAsin = "aten::asin(Tensor self) -> Tensor";
inline constexpr std::string_view kAsinh = "aten::asinh(Tensor self) -> Tensor";
inline constexpr std::string_view kAtan = "aten::atan(Tensor self) -> Tensor";
inline constexpr std::string_view kAtan2 = "aten::atan2(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kAtanh = "aten::atanh(Tensor self) -> Tensor";
inline constexpr std::string_view kAvgPool2d =
    "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
    "count_include_pad=True, int? divisor_override=None) -> Tensor";
inline constexpr std::string_view kBernoulliP =
    "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor";
inline constexpr std::string_view kBitwiseAndScalar = "aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kBitwiseAndTensor = "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBitwiseLeftShiftTensor =
    "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBitwiseLeftShiftTensorScalar =
    "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kBitwiseNot = "aten::bitwise_not(Tensor self) -> Tensor";
inline constexpr std::string_view kBitwiseOrScalar = "aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kBitwiseOrTensor = "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBitwiseRightShiftTensor =
    "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBitwiseRightShiftTensorScalar =
    "aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kBitwiseXorScalar = "aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kBitwiseXorTensor = "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kBmm = "aten::bmm(Tensor self, Tensor mat2) -> Tensor";
inline constexpr std::string_view kCat = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor";
inline constexpr std::string_view kCeil = "aten::ceil(Tensor self) -> Tensor";
inline constexpr std::string_view kClamp = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor";
inline constexpr std::string_view kClampTensor =
    "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor";
inline constexpr std::string_view kClone = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor";
inline constexpr std::string_view kConstantPadNd =
    "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor";
inline constexpr std::string_view kContiguous =
    "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)";
inline constexpr std::string_view kConv1d =
    "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
    "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor";
inline constexpr std::string_view kConv2d =
    "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
    "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor";
inline constexpr std::string_view kConv3d =
    "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, "
    "0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor";
inline constexpr std::string_view kConvTranspose2dInput =
    "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
    "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor";
inline constexpr std::string_view kConvolution =
    "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
    "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor";
inline constexpr std::string_view kCos = "aten::cos(Tensor self) -> Tensor";
inline constexpr std::string_view kCumsum = "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kDiagEmbed =
    "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor";
inline constexpr std::string_view kDiagonal =
    "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)";
inline constexpr std::string_view kDiagonalScatter =
    "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor";
inline constexpr std::string_view kDivScalar = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kDivScalarMode =
    "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor";
inline constexpr std::string_view kDivTensor = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kDivTensorMode =
    "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor";
inline constexpr std::string_view kDropout = "aten::dropout(Tensor input, float p, bool train) -> Tensor";
inline constexpr std::string_view kElu =
    "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor";
inline constexpr std::string_view kErf = "aten::erf(Tensor self) -> Tensor";
inline constexpr std::string_view kErfc = "aten::erfc(Tensor self) -> Tensor";
inline constexpr std::string_view kExp = "aten::exp(Tensor self) -> Tensor";
inline constexpr std::string_view kExp2 = "aten::exp2(Tensor self) -> Tensor";
inline constexpr std::string_view kExpand =
    "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)";
inline constexpr std::string_view kExpm1 = "aten::expm1(Tensor self) -> Tensor";
inline constexpr std::string_view kEyeM =
    "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kFeatureAlphaDropout =
    "aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor";
inline constexpr std::string_view kFeatureDropout =
    "aten::feature_dropout(Tensor input, float p, bool train) -> Tensor";
inline constexpr std::string_view kFlip = "aten::flip(Tensor self, int[] dims) -> Tensor";
inline constexpr std::string_view kFloor = "aten::floor(Tensor self) -> Tensor";
inline constexpr std::string_view kFloorDivide = "aten::floor_divide(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kFull =
    "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor";
inline constexpr std::string_view kFullLike =
    "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor";
inline constexpr std::string_view kGather =
    "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor";
inline constexpr std::string_view kGeScalar = "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kGeTensor = "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kGelu = "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor";
inline constexpr std::string_view kGtScalar = "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kGtTensor = "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kIndexPut =
    "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor";
inline constexpr std::string_view kIndexPutInPlace =
    "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)";
inline constexpr std::string_view kIndexSelect = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor";
inline constexpr std::string_view kIndexTensor = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor";
inline constexpr std::string_view kInternalAdaptiveAvgPool2d =
    "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor";
inline constexpr std::string_view kInternalGroupedMm =
    "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
    "Tensor";
inline constexpr std::string_view kIsnan = "aten::isnan(Tensor self) -> Tensor";
inline constexpr std::string_view kItem = "aten::item(Tensor self) -> Scalar";
inline constexpr std::string_view kLayerNorm =
    "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor";
inline constexpr std::string_view kLeScalar = "aten::le.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kLeTensor = "aten::le.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kLinear = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";
inline constexpr std::string_view kLog = "aten::log(Tensor self) -> Tensor";
inline constexpr std::string_view kLog1p = "aten::log1p(Tensor self) -> Tensor";
inline constexpr std::string_view kLogSoftmaxInt =
    "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kLogicalNot = "aten::logical_not(Tensor self) -> Tensor";
inline constexpr std::string_view kLogit = "aten::logit(Tensor self, float? eps=None) -> Tensor";
inline constexpr std::string_view kLogsumexp = "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kLtScalar = "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kLtTensor = "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMaskedFillScalar =
    "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor";
inline constexpr std::string_view kMaskedSelect = "aten::masked_select(Tensor self, Tensor mask) -> Tensor";
inline constexpr std::string_view kMatmul = "aten::matmul(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMaxPool2d =
    "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor";
inline constexpr std::string_view kMaxPool2dWithIndices =
    "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)";
inline constexpr std::string_view kMaximum = "aten::maximum(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMeanDim =
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kMinimum = "aten::minimum(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kMm = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
inline constexpr std::string_view kMulScalar = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kMulTensor = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kNativeGroupNorm =
    "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, "
    "float eps) -> (Tensor, Tensor, Tensor)";
inline constexpr std::string_view kNativeLayerNorm =
    "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)";
inline constexpr std::string_view kNeScalar = "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kNeTensor = "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kNeg = "aten::neg(Tensor self) -> Tensor";
inline constexpr std::string_view kNonzero = "aten::nonzero(Tensor self) -> Tensor";
inline constexpr std::string_view kNormalFunctional =
    "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor";
inline constexpr std::string_view kOuter = "aten::outer(Tensor self, Tensor vec2) -> Tensor";
inline constexpr std::string_view kPermute = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)";
inline constexpr std::string_view kPowScalar = "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor";
inline constexpr std::string_view kPowTensorScalar = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor";
inline constexpr std::string_view kPowTensorTensor = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor";
inline constexpr std::string_view kProdDimInt =
    "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kRand =
    "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kRandLike =
    "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor";
inline constexpr std::string_view kRandn =
    "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";
inline constexpr std::string_view kRandnLike =
    "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor";
inline constexpr std::string_view kReciprocal = "aten::reciprocal(Tensor self) -> Tensor";
inline constexpr std::string_view kRelu = "aten::relu(Tensor self) -> Tensor";
inline constexpr std::string_view kRemainderTensor = "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kRepeat = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor";
inline constexpr std::string_view kRepeatInterleaveSelfInt =
    "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> "
    "Tensor";
inline constexpr std::string_view kRepeatInterleaveTensor =
    "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor";
inline constexpr std::string_view kReshape = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)";
inline constexpr std::string_view kRmsNorm =
    "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor";
inline constexpr std::string_view kRoll = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor";
inline constexpr std::string_view kRound = "aten::round(Tensor self) -> Tensor";
inline constexpr std::string_view kRsqrt = "aten::rsqrt(Tensor self) -> Tensor";
inline constexpr std::string_view kRsubScalar =
    "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kScaledDotProductAttention =
    "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
    "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor";
inline constexpr std::string_view kScatterAdd =
    "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
inline constexpr std::string_view kScatterReduceTwo =
    "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor";
inline constexpr std::string_view kScatterSrc =
    "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
inline constexpr std::string_view kScatterValue =
    "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor";
inline constexpr std::string_view kSelectInt = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)";
inline constexpr std::string_view kSelectScatter =
    "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor";
inline constexpr std::string_view kSigmoid = "aten::sigmoid(Tensor self) -> Tensor";
inline constexpr std::string_view kSign = "aten::sign(Tensor self) -> Tensor";
inline constexpr std::string_view kSin = "aten::sin(Tensor self) -> Tensor";
inline constexpr std::string_view kSinc = "aten::sinc(Tensor self) -> Tensor";
inline constexpr std::string_view kSliceScatter =
    "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor";
inline constexpr std::string_view kSliceTensor =
    "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)";
inline constexpr std::string_view kSoftmaxInt =
    "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kSoftplus =
    "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor";
inline constexpr std::string_view kSort =
    "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)";
inline constexpr std::string_view kSortStable =
    "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
    "indices)";
inline constexpr std::string_view kSplitWithSizes =
    "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]";
inline constexpr std::string_view kSqrt = "aten::sqrt(Tensor self) -> Tensor";
inline constexpr std::string_view kSqueeze = "aten::squeeze(Tensor(a) self) -> Tensor(a)";
inline constexpr std::string_view kSqueezeDim = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)";
inline constexpr std::string_view kSqueezeDims = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)";
inline constexpr std::string_view kStdCorrection =
    "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kStdMeanCorrection =
    "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "(Tensor, Tensor)";
inline constexpr std::string_view kSubScalar = "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kSubTensor =
    "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
inline constexpr std::string_view kSum = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kSumDimIntList =
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
inline constexpr std::string_view kSwapaxes = "aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)";
inline constexpr std::string_view kSwapdims = "aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
inline constexpr std::string_view kSymSizeInt = "aten::sym_size.int(Tensor self, int dim) -> SymInt";
inline constexpr std::string_view kT = "aten::t(Tensor(a) self) -> Tensor(a)";
inline constexpr std::string_view kTanh = "aten::tanh(Tensor self) -> Tensor";
inline constexpr std::string_view kToDtype =
    "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)";
inline constexpr std::string_view kTopk =
    "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
    "indices)";
inline constexpr std::string_view kTransposeInt =
    "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
inline constexpr std::string_view kTrunc = "aten::trunc(Tensor self) -> Tensor";
inline constexpr std::string_view kUniqueConsecutive =
    "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
    "(Tensor, Tensor, Tensor)";
inline constexpr std::string_view kUnsqueeze = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)";
inline constexpr std::string_view kVarCorrection =
    "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor";
inline constexpr std::string_view kVarMeanCorrection =
    "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "(Tensor, Tensor)";
inline constexpr std::string_view kView = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)";
inline constexpr std::string_view kViewAsComplex = "aten::view_as_complex(Tensor(a) self) -> Tensor(a)";
inline constexpr std::string_view kViewAsReal = "aten::view_as_real(Tensor(a) self) -> Tensor(a)";
inline constexpr std::string_view kVstack = "aten::vstack(Tensor[] tensors) -> Tensor";
inline constexpr std::string_view kWhereScalarOther =
    "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kWhereSelf =
    "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor";
inline constexpr std::string_view kXlogyScalarOther = "aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor";
inline constexpr std::string_view kXlogyScalarSelf = "aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor";
inline constexpr std::string_view kXlogyTensor = "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor";

}  // namespace argosy::aten
