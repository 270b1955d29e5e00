#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Gives every symbol of a component that has no upper bound the one that `largest` has for its name, by
/// SymContext::set_range. Symbols without a row in `largest` stay unbounded, for largest_sizes() to refuse. A bound
/// below the smallest size of the trace is an error.
Status set_bounds(const Component& component, const std::map<std::string, int64_t>& largest);

/// Gives sizes that depend on data (how many elements a mask selects, where a list of numbers cuts) the bound that
/// follows from what they are part of.
void bound_selections(const Program& program, const Component& component);

/// The largest sizes of a tensor; an error if one has no bound, or exceeds 31 bits.
Result<std::vector<int32_t>> largest_sizes(const Component& component, const TensorType& type);
/// Whether any of its sizes varies.
bool is_dynamic(const TensorType& type);

}  // namespace argosy::executorch
