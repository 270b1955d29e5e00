#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace argosy {

/// The dtype that a model's config.json asks for, in torch's words ("bfloat16"): its own, else that of the first of its
/// parts that has one; "float32" if none does.
Result<std::string> configured_dtype(const std::filesystem::path& model);

}  // namespace argosy
