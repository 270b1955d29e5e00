#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "engines/lint.h"

namespace argosy {

/// engines::lint(), with a look into programs of backends that engines do not know.
Result<engines::LintReport> lint_folder(const std::filesystem::path& folder, std::string_view engine);

}  // namespace argosy
