#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace argosy::executorch {

/// XNNPACK packs groups of this many values of a row, or of a multiple.
inline constexpr int64_t kGroupUnit = 32;

/// Whether rows of `width` values are made of groups of `size` that XNNPACK can pack.
bool fits_groups(int64_t width, int64_t size);

/// The sizes of groups that rows of all these widths are made of, as a text for hints; if there is none, those that
/// most of them are made of.
std::string group_sizes_for(const std::set<int64_t>& widths);

}  // namespace argosy::executorch
