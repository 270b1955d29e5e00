#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "driver/backends.h"
#include "driver/variants.h"

namespace argosy {

/// As dtypes may be written, and what they are: "fp16" is "float16".
std::map<std::string, std::string> names_of_dtypes();

/// Sets what a variant says of how weights are stored, beside its dtype.
void set_variant(const Variant& variant, OnnxOptions& options);

/// Refuses variants whose files would have the same names in a bundle for the engine.
Status check_variant_names(std::span<const std::string> names, const OnnxOptions& options);

/// Reads what --dtype takes for one export: a dtype, or of ONNX a variant, which sets its options. Returns the dtype
/// that the model is captured in; "auto": the configuration's.
Result<std::string> read_stored_dtype(const Backend& backend, std::string_view text, BackendOptions& options);

}  // namespace argosy
