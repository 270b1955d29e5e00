#include "tensor/unpack.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

// The eight magnitudes 0, 0.5, 1, 1.5, 2, 3, 4 and 6 as f8e4m3fn.
constexpr std::array<uint8_t, 8> kQuarterFloats = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c};

constexpr uint8_t unpack_one(DType from, uint8_t bits) {
  switch (from) {
    case DType::kI2: return static_cast<uint8_t>((bits ^ 0x2) - 0x2);
    case DType::kI4: return static_cast<uint8_t>((bits ^ 0x8) - 0x8);
    case DType::kF4E2M1: return static_cast<uint8_t>(kQuarterFloats[bits & 7] | (bits & 8) << 4);
    default: return bits;
  }
}

// What each byte becomes: the elements in it, one after another.
template <DType kFrom, int kBits>
void unpack_loop(std::span<const std::byte> in, std::byte* out) {
  constexpr int kCount = 8 / kBits;
  using Row = std::array<uint8_t, kCount>;
  static constexpr std::array<Row, 256> kTable = [] {
    std::array<Row, 256> table{};
    for (int byte = 0; byte < 256; ++byte) {
      for (int i = 0; i < kCount; ++i) {
        table[static_cast<size_t>(byte)][static_cast<size_t>(i)] =
            unpack_one(kFrom, static_cast<uint8_t>(byte >> (i * kBits) & ((1 << kBits) - 1)));
      }
    }
    return table;
  }();
  for (size_t i = 0; i < in.size(); ++i) {
    std::memcpy(out + i * kCount, kTable[static_cast<size_t>(in[i])].data(), kCount);
  }
}

}  // namespace

bool can_unpack(DType from, DType to) {
  switch (from) {
    case DType::kU2:
    case DType::kU4: return to == DType::kU8;
    case DType::kI2:
    case DType::kI4: return to == DType::kI8;
    case DType::kF4E2M1: return to == DType::kF8E4M3FN;
    default: return false;
  }
}

void unpack_elements(DType from, std::span<const std::byte> in, std::span<std::byte> out) {
  ARGOSY_CHECK(out.size() * static_cast<size_t>(bits_of(from)) == in.size() * 8,
               format("{} bytes of {} into {}", in.size(), to_text(from), out.size()));
  switch (from) {
    case DType::kU2: return unpack_loop<DType::kU2, 2>(in, out.data());
    case DType::kI2: return unpack_loop<DType::kI2, 2>(in, out.data());
    case DType::kU4: return unpack_loop<DType::kU4, 4>(in, out.data());
    case DType::kI4: return unpack_loop<DType::kI4, 4>(in, out.data());
    default: break;
  }
  ARGOSY_CHECK(from == DType::kF4E2M1, std::string(to_text(from)));
  unpack_loop<DType::kF4E2M1, 4>(in, out.data());
}

}  // namespace argosy
