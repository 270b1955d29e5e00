#pragma once

#include "base/result.h"
#include "frontends/pt2/json_field.h"
#include "ir/program.h"

namespace argosy {

/// What a capture says of a component beyond its graph: names of outputs, names and ranges of dims (dims of one name
/// are equal), dims that the trace fixed, and why. Must agree with the graph.
Status read_interface(const JsonField& json, Component& component);

}  // namespace argosy
