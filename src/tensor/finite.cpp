#include "tensor/finite.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace argosy {
namespace {

static_assert(std::endian::native == std::endian::little, "the exponent is looked for in an element's last bytes");

// Exponents lie in the upper 16 bits of every type of at least that size, so all are searched as lanes of 16 bits: an
// exponent of ones is the largest that there is.
constexpr int kHalves = 8;
using Halves = int16_t __attribute__((vector_size(kHalves * sizeof(int16_t))));

/// Whether the upper 16 bits of an element, without the sign, are at least `limit`.
bool reaches(std::span<const std::byte> bytes, size_t element_bytes, int16_t limit) {
  Halves mask = {};
  for (int i = 0; i < kHalves; ++i) {
    bool is_upper = (static_cast<size_t>(i) + 1) * sizeof(int16_t) % element_bytes == 0;
    mask[i] = is_upper ? int16_t{0x7FFF} : int16_t{0};
  }
  auto lanes_at = [&](const std::byte* from) {
    Halves lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    return lanes & mask;
  };
  auto larger = [](Halves a, Halves b) { return a > b ? a : b; };
  // Two at a time, so that one need not wait for the other.
  Halves most = {}, other = {};
  size_t done = 0;
  for (; bytes.size() - done >= 4 * sizeof(Halves); done += 4 * sizeof(Halves)) {
    const std::byte* from = bytes.data() + done;
    most = larger(most, larger(lanes_at(from), lanes_at(from + sizeof(Halves))));
    other = larger(other, larger(lanes_at(from + 2 * sizeof(Halves)), lanes_at(from + 3 * sizeof(Halves))));
  }
  for (; done < bytes.size(); done += sizeof(Halves)) {
    std::byte last[sizeof(Halves)] = {};
    std::memcpy(last, bytes.data() + done, std::min(sizeof(last), bytes.size() - done));
    most = larger(most, lanes_at(last));
  }
  most = larger(most, other);
  for (int i = 0; i < kHalves; ++i) {
    if (most[i] >= limit) return true;
  }
  return false;
}

}  // namespace

bool has_non_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF64: return reaches(bytes, 8, 0x7FF0);
    case DType::kF32: return reaches(bytes, 4, 0x7F80);
    case DType::kF16: return reaches(bytes, 2, 0x7C00);
    case DType::kBF16: return reaches(bytes, 2, 0x7F80);
    default: return false;
  }
}

}  // namespace argosy
