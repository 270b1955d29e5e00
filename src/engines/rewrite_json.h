#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/json.h"

namespace argosy::engines {

/// A new value for a member of an object. Null: the member is removed.
struct JsonChange {
  using Value = std::variant<std::nullptr_t, bool, int64_t, std::string, JsonView>;
  std::vector<std::string> path;  // names on the way from the root, its own last
  Value value;
};

/// The text of an object with members changed; those that it lacks are added at the end, with the objects on the way.
/// Of two changes of one member the later one holds.
std::string rewritten(JsonView object, std::span<const JsonChange> changes);

}  // namespace argosy::engines
