#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "driver/live_tensors.h"

namespace argosy {

/// A weight as Python hands it over: name, dtype, shape, address, bytes, identity.
using TensorTuple = std::tuple<std::string, std::string, std::vector<int64_t>, uintptr_t, size_t, std::string>;

/// Raises argosy.ExportError for a dtype that is none. The GIL must be held.
std::vector<LiveTensor> live_weights(const std::vector<TensorTuple>& tensors);

/// The first error, with all others in its text: one run names every op that is missing.
[[noreturn]] void raise_all(Error error, const Diagnostics& diagnostics);

}  // namespace argosy
