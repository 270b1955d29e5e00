#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace argosy {

/// An index into one table, typed by what it indexes so that two kinds cannot be mixed up. Ids sort by creation.
template <class Tag>
struct Id {
  uint32_t index = UINT32_MAX;

  /// False for a default-constructed id, which names nothing.
  bool is_valid() const { return index != UINT32_MAX; }

  friend auto operator<=>(Id, Id) = default;
};

}  // namespace argosy

template <class Tag>
struct std::hash<argosy::Id<Tag>> {
  size_t operator()(argosy::Id<Tag> id) const noexcept { return id.index; }
};
