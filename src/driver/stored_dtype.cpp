#include "driver/stored_dtype.h"

#include <algorithm>

#include "backends/onnx/quantize.h"
#include "base/check.h"
#include "base/text.h"
#include "engines/engine.h"

namespace argosy {

std::map<std::string, std::string> names_of_dtypes() {
  return {{"auto", "auto"},    {"float32", "float32"},   {"fp32", "float32"}, {"float16", "float16"},
          {"fp16", "float16"}, {"bfloat16", "bfloat16"}, {"bf16", "bfloat16"}};
}

void set_variant(const Variant& variant, OnnxOptions& options) {
  if (!variant.quantize.empty()) {
    Status status = onnx::read_quantization(variant.quantize, options.lowering.quantization);
    ARGOSY_CHECK(status.has_value(), "a variant that --quantize does not know: " + std::string(variant.name));
  }
  options.lowering.half = variant.is_mixed ? onnx::HalfMode::kMixed : onnx::HalfMode::kNone;
}

Status check_variant_names(std::span<const std::string> names, const OnnxOptions& options) {
  const engines::Engine* engine = engines::find_engine(options.engine);
  auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  if (engine == nullptr || !engine->limits.has_variants || !has("fp16") || !has("mixed16")) return {};
  return fail(ErrorCode::kInvalidInput,
              format("fp16 and mixed16 have the same names in a bundle for {}", engine->title),
              "leave out one of them");
}

Result<std::string> read_stored_dtype(const Backend& backend, std::string_view text, BackendOptions& options) {
  const auto names = names_of_dtypes();
  if (auto found = names.find(std::string(text)); found != names.end()) return found->second;
  const Variant* variant = backend.name == "onnx" ? find_variant(text) : nullptr;
  if (variant == nullptr) {
    return fail(ErrorCode::kInvalidInput, format("{} is no dtype of {} exports", quoted(text), backend.name),
                "ask for float32, float16 or bfloat16; of ONNX also for one variant, such as q4");
  }
  if (options.onnx.lowering.quantization.is_wanted()) {
    return fail(ErrorCode::kInvalidInput, format("{} says how weights are stored, and so does a quantisation", text),
                "leave out one of them");
  }
  set_variant(*variant, options.onnx);
  return std::string(variant->dtype);
}

}  // namespace argosy
