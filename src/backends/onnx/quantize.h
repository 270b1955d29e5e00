#pragma once

#include <string>
#include <string_view>

#include "backends/onnx/options.h"
#include "base/result.h"
#include "passes/pass.h"

namespace argosy::onnx {

/// input @ weight.T + bias, the weight stored as integers: `weight` [out, blocks, bytes], `scales` [out, blocks],
/// `zero_points` [out, bytes] or none: 2^(bits-1). Accuracy level as Quantization has it.
inline constexpr std::string_view kMatMulNBits =
    "onnx::matmul_nbits(Tensor input, Tensor weight, Tensor scales, Tensor? zero_points, Tensor? bias, int width, int "
    "bits, int block_size, int accuracy_level) -> Tensor";
/// The same, the weight in NF4: `weight` and `scales` are flat, since blocks go on from row to row.
inline constexpr std::string_view kMatMulBnb4 =
    "onnx::matmul_bnb4(Tensor input, Tensor weight, Tensor scales, Tensor? bias, int rows, int width, int block_size) "
    "-> Tensor";
/// Rows of a weight as MatMulNBits has them, [rows, bytes].
inline constexpr std::string_view kGatherBlockQuantized =
    "onnx::gather_block_quantized(Tensor weight, Tensor indices, Tensor scales, Tensor? zero_points, int bits, int "
    "block_size) -> Tensor";

/// input @ weight + bias in integers: `weight` i8 or u8 [in, out], `scales` [out], `zero_points` [out] of u8. The input
/// is rounded to 8 bits, with a scale and a zero point for all of it.
inline constexpr std::string_view kDynamicProduct =
    "onnx::dynamic_product(Tensor input, Tensor weight, Tensor scales, Tensor? zero_points, Tensor? bias) -> Tensor";
/// Rows of a weight [rows, width] in 8 bits, a scale for each row.
inline constexpr std::string_view kGatherRows =
    "onnx::gather_rows(Tensor weight, Tensor indices, Tensor scales, Tensor? zero_points) -> Tensor";

/// Experts whose weights [experts, out, bytes] are stored so; the rest as kExpertsOfEngine has it.
inline constexpr std::string_view kQuantizedExperts =
    "onnx::quantized_experts(Tensor input, Tensor router, Tensor first, Tensor first_scales, Tensor? "
    "first_zero_points, "
    "Tensor? first_bias, Tensor second, Tensor second_scales, Tensor? second_zero_points, Tensor? second_bias, int k, "
    "float alpha, float beta, float limit, int bits, int block_size) -> Tensor";

/// "quantize-weights-for-onnx": stores weights of linear layers, experts and embeddings as integers. One that is used
/// in both ways with the same bits is stored once. Layers whose rows are shorter than a block, or that blocks of
/// NF4 do not fit, stay as they are, and a note counts them; another counts what stays for other reasons. If no weight
/// is stored so, or a rule fits none, it is an error.
Pass quantize_weights(const Quantization& given);
Result<Pass> quantize_weights_with(std::string_view settings);

/// Reads "int4,lm_head=int8,embedding=int4" or "dynamic-int8": bits of linear layers, and rules. A name that is not
/// known here becomes `own_name`: a package may have it.
Status read_quantization(std::string_view text, Quantization& how);
/// The text that it is read from.
std::string quantization_text(const Quantization& how);
/// Its first part: how linear layers are stored that no rule is for; of a package's scheme "int4" or "int8", which say
/// as much of the file. Empty: as they are.
std::string scheme_of(const Quantization& how);
/// Values that share a scale, as asked for or as is usual.
int64_t block_of(const Quantization& how);
/// Whether some weights are to be NF4.
bool has_nf4(const Quantization& how);
/// "default", "rtn", "k_quant".
std::string_view name_of(QuantizeMethod method);
/// Bits of integers in the file.
int stored_bits(const Quantization& how, int bits);
/// What is said of a scheme that nobody has.
Error unknown_scheme(std::string_view name);
/// Checks options before there is a program.
Status check_quantization(const Quantization& how);

/// "int4", "int8-k_quant", "nf4": how manifests call it; with zero points "uint4". A package's scheme has its name.
std::string encoding_of(const Quantization& how, int bits);

}  // namespace argosy::onnx
