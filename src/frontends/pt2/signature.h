#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontends/pt2/json_field.h"
#include "ir/program.h"

namespace argosy {

/// What one input of the entry graph stands for.
struct InputRole {
  enum class Kind : uint8_t { kWeight, kUser, kConstant };
  Kind kind = Kind::kUser;
  WeightKind weight_kind = WeightKind::kParameter;
  std::string_view name;      // of the weight; of a constant input
  std::string_view argument;  // name of the graph's value; empty for constants
  Argument constant;
};

/// The graph signature, as it stands in the JSON. Views point into the document.
struct SignatureJson {
  std::vector<InputRole> inputs;
  std::vector<OutputSpec> outputs;
};

Result<SignatureJson> read_signature(const JsonField& signature);

}  // namespace argosy
