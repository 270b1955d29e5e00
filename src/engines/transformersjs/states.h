#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::transformersjs {

/// What is done so that a decoder's states have the names that the engine makes from config.json.
struct StatePlan {
  std::vector<Edit> edits;
  /// Of a decoder all of whose layers have a key and a value, which is what the engine takes any model for; 0 for one
  /// with other states, of a type that the engine knows.
  int64_t key_value_layers = 0;
};

/// `part` is the member of the configuration that describes the decoder; empty: all of it. States that the engine
/// cannot name are an error with the reason.
Result<StatePlan> plan_states(const SourceModel& model, const ComponentInterface& decoder, const std::string& part);

}  // namespace argosy::engines::transformersjs
