#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "io/output.h"

namespace argosy {

/// A whole file of these bytes, as OutputFile writes them: it appears when it is complete.
Status write_file(const std::filesystem::path& path, std::string_view bytes, Overwrite overwrite);

}  // namespace argosy
