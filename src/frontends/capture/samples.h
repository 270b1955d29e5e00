#pragma once

#include "base/result.h"
#include "frontends/capture/stored_tensors.h"
#include "frontends/pt2/json_field.h"
#include "ir/program.h"

namespace argosy {

/// Fills the component's samples from a call that the capture recorded on the twin: ids, masks and positions as they
/// were, floating-point tensors of those sizes with numbers made up, the same each time. None at all where the full
/// model differs from its twin in a way that would make the call invalid, or where a capture has no samples.
Status read_samples(const JsonField& json, const ZipReader& zip, const StoredTensors& values, Component& component);

}  // namespace argosy
