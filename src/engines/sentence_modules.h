#pragma once

#include <filesystem>
#include <string>

namespace argosy::engines {

/// The modules that a Sentence Transformers folder applies after the model (modules.json) and that no export has, as a
/// sentence without its full stop: "modules.json puts Pooling (mean) and Normalize behind the model, …". Empty if there
/// are none.
std::string left_out_modules(const std::filesystem::path& folder);

}  // namespace argosy::engines
