#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.h"

namespace argosy::engines::genai {

/// What kind of model a `model.type` stands for, by the parts that it must have.
enum class ModelKind : uint8_t { kText, kVision, kSpeech, kMultimodal, kOther };

/// nullopt: the engine does not know the type.
std::optional<ModelKind> model_kind(std::string_view type);

/// Keys of genai_config.json that the engine refuses: path ("model.decoder.head_dim") and what is wrong with each. It
/// stops at the first, so a single one keeps a bundle from opening.
std::vector<std::pair<std::string, std::string>> refused_keys(JsonView config);

}  // namespace argosy::engines::genai
