#pragma once

#include <filesystem>
#include <string>

namespace argosy::engines {

/// What the folder of a model of Sentence Transformers puts behind the model (modules.json) and no export has, as a
/// sentence without its full stop: "modules.json puts Pooling (mean) and Normalize behind the model, …". Empty if there
/// is nothing of that kind.
std::string left_out_modules(const std::filesystem::path& folder);

}  // namespace argosy::engines
