#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Vectors of floats that compilers map to what the processor has. Sums are kept in so many lanes on every processor,
/// so that they are the same bits. Internal to this layer.
namespace argosy {

inline constexpr size_t kLanes = 8;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using LaneBits = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

/// In [2^23, 2^24) the unit of a float is 1, so that adding this and taking it away rounds half to even.
inline constexpr float kRounder = 0x1.8p23f;

[[gnu::always_inline]] inline void load_lanes(Lanes& to, const float* from) { std::memcpy(&to, from, sizeof(to)); }

}  // namespace argosy
