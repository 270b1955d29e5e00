#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace argosy::executorch {

/// XNNPACK packs groups of this many values of a row, or of a multiple.
inline constexpr int64_t kGroupUnit = 32;

/// Whether rows of `width` values are made of groups of `size` that XNNPACK can pack.
bool fits_groups(int64_t width, int64_t size);

/// The group sizes into which rows of all these widths can be cut, as a text for hints; if there is none, those that
/// fit most of them.
std::string group_sizes_for(const std::set<int64_t>& widths);

}  // namespace argosy::executorch
