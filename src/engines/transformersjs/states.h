#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::transformersjs {

/// The edits that give a decoder's states the names that the engine makes from config.json.
struct StatePlan {
  std::vector<Edit> edits;
  /// The number of layers if all have a key and a value, which the engine can run for any type of model; 0 for a
  /// decoder with other states, of a type that the engine knows.
  int64_t key_value_layers = 0;
};

/// `part` is the member of the configuration that describes the decoder; empty: all of it. States that the engine
/// cannot name are an error with the reason.
Result<StatePlan> plan_states(const SourceModel& model, const ComponentInterface& decoder, const std::string& part);

}  // namespace argosy::engines::transformersjs
