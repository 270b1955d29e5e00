#pragma once

#include "base/result.h"
#include "io/json.h"
#include "ir/program.h"

namespace argosy {

/// Writes the entry graph of a component, with its sub-graphs inline, as the graph JSON has it.
Status write_entry_graph(const Program& program, const Component& component, JsonWriter& json);

}  // namespace argosy
