#include "backends/onnx/kept_integers.h"

#include "base/text.h"
#include "passes/added_weights.h"
#include "passes/quantized_weights.h"
#include "tensor/repack.h"

namespace argosy::onnx {

bool KeptIntegers::look_at(const Weight& weight) {
  if (!is_dequantized(*weight.source)) return false;
  auto found = repacked(weight.source, weight.dtype);
  if (found && found->has_value()) return true;
  dequantized_.insert(weight.name);
  return false;
}

Result<const KeptIntegers::Stored*> KeptIntegers::store(Program& program, const Weight& weight, int level) {
  ARGOSY_TRY(std::optional<RepackedWeight> found, repacked(weight.source, weight.dtype));
  if (!found) return fail(ErrorCode::kInternal, format("{} is no matrix of integers", quoted(weight.name)));
  std::string encoding = format("{}{}-kept", found->zero_points == nullptr ? "int" : "uint", found->bits);
  auto [data, is_new] = stored_.try_emplace(weight.source->recipe());
  if (is_new) {
    const std::string name = format("{}.{}", weight.name, encoding);
    data->second = {{add_weight(program, name, found->integers), add_weight(program, name + ".scales", found->scales)},
                    found->bits,
                    found->block};
    if (found->zero_points != nullptr)
      data->second.outputs.push_back(add_weight(program, name + ".zero_points", found->zero_points));
  }
  if (level == 4) encoding += "-a8";
  note_quantized(program, {weight.name, "linear", encoding, found->block});
  return &data->second;
}

Status KeptIntegers::check(const Quantization& how, Diagnostics& diagnostics) const {
  if (!how.keeps) return {};
  if (!dequantized_.empty()) {
    diagnostics.notes.push_back(
        format("{} that the checkpoint stores in few bits {} dequantised, {} among them: products of the engine do not "
               "take them so",
               dequantized_.size() == 1 ? "1 weight" : format("{} weights", dequantized_.size()),
               dequantized_.size() == 1 ? "is" : "are", quoted(*dequantized_.begin())));
  }
  if (!stored_.empty() || how.bits != 0 || !how.rules.empty()) return {};
  return fail(
      ErrorCode::kInvalidInput,
      dequantized_.empty() ? "--quantize keep has nothing to keep: the checkpoint has no linear layers in 4 or 8 bits"
                           : "--quantize keep fits none of the checkpoint's weights",
      "GPTQ, AWQ and packed compressed-tensors of 4 and 8 bits are kept, in groups of 16 to 256; use int4 or int8");
}

}  // namespace argosy::onnx
