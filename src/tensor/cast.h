#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace argosy {

// Conversions by value, the same bits on every processor and whatever rounding or flush-to-zero mode the thread is in:
//   float to float      rounds once, to nearest, ties to even; subnormals are kept, overflow gives an infinity; a NaN
//                       keeps its sign and the payload bits that fit from the top, and becomes quiet
//   integer to float    rounds once, the same way
//   bool to any         0 or 1; any byte but 0 is true
//   integer to integer  only where the target holds every value of the source
// Floats are f64, f32, f16, bf16; integers those of 8 to 64 bits. Checkpoints have more: f8e4m3fn, f8e5m2 and f8e8m0fnu
// are converted to floats, and packed types to the ones of 8 bits that hold their values (tensor/unpack.h). Everything
// else is not converted: float to integer and narrowing of integers could lose values, and complex types have no use
// here yet.

/// Which code does it; both give the same bits. kPortable is for tests and for processors without AVX2 and F16C.
enum class CastPath : uint8_t { kBest, kPortable };

/// Whether cast_elements() converts between two different dtypes.
bool can_cast(DType from, DType to);
/// Whether every value survives: f16 to f32, i8 to bf16, ...
bool is_exact_cast(DType from, DType to);

/// Converts all elements of `in` to `out`, which must be of the same number of elements and must not overlap it; no
/// alignment is needed. can_cast(from, to) must hold.
void cast_elements(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out,
                   CastPath path = CastPath::kBest);

/// What is left of one value in f16 or bf16, as the casts above have it; in f32 all of it. Only in the default float
/// mode (tensor/float_mode.h), which cast_elements() sets by itself: that takes longer than one value does.
float rounded_to(float value, DType type);

}  // namespace argosy
