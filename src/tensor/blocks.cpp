#include "tensor/blocks.h"

#include <array>
#include <bit>
#include <cstring>

namespace argosy {
namespace {

constexpr int kSmallBlock = 32;

float half_at(const std::byte* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof half);
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, rest = static_cast<uint32_t>(half & 0x7fff) << 13;
  if ((half & 0x7c00) == 0x7c00) return std::bit_cast<float>(sign | rest | 0x7f800000);
  // As a float the exponent is 112 too small; the product is exact.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f));
}

int low_bits(std::byte byte) { return std::to_integer<int>(byte) & 15; }
int high_bits(std::byte byte) { return std::to_integer<int>(byte) >> 4; }

/// 16 bytes: the first half of the values in their low bits, the second in their high ones. The fifth bit of each, if
/// there is one, is a bit of a word of 32.
void unpack_small(const std::byte* packed, const std::byte* fifth, int* values) {
  uint32_t bits = 0;
  if (fifth != nullptr) std::memcpy(&bits, fifth, sizeof bits);
  for (int i = 0; i < 16; ++i) {
    values[i] = low_bits(packed[i]) | static_cast<int>((bits >> i & 1) << 4);
    values[i + 16] = high_bits(packed[i]) | static_cast<int>((bits >> (i + 16) & 1) << 4);
  }
}

/// (value - zero) * scale
void decode_centred(const std::byte* scale, const std::byte* packed, const std::byte* fifth, int zero, float* out) {
  int values[kSmallBlock];
  unpack_small(packed, fifth, values);
  float factor = half_at(scale);
  for (int i = 0; i < kSmallBlock; ++i) out[i] = static_cast<float>(values[i] - zero) * factor;
}

/// value * scale + least
void decode_shifted(const std::byte* scales, const std::byte* packed, const std::byte* fifth, float* out) {
  int values[kSmallBlock];
  unpack_small(packed, fifth, values);
  float factor = half_at(scales), least = half_at(scales + 2);
  for (int i = 0; i < kSmallBlock; ++i) out[i] = static_cast<float>(values[i]) * factor + least;
}

/// Scales and least values of eight parts, of 6 bits each, in 12 bytes.
struct PartScales {
  int scale[8], least[8];
};
PartScales unpack_parts(const std::byte* bytes) {
  auto at = [&](int i) { return std::to_integer<int>(bytes[i]); };
  PartScales parts{};
  for (int i = 0; i < 4; ++i) {
    parts.scale[i] = at(i) & 63;
    parts.least[i] = at(i + 4) & 63;
    parts.scale[i + 4] = (at(i + 8) & 15) | (at(i) >> 6 << 4);
    parts.least[i + 4] = (at(i + 8) >> 4) | (at(i + 4) >> 6 << 4);
  }
  return parts;
}

/// Eight parts of 32 values; two parts share 32 bytes. `fifth`, if not null, has a bit of each part in each of its 32
/// bytes.
void decode_parts(const std::byte* block, const std::byte* fifth, const std::byte* packed, float* out) {
  float factor = half_at(block), least_factor = half_at(block + 2);
  PartScales parts = unpack_parts(block + 4);
  for (int part = 0; part < 8; ++part) {
    float scale = factor * static_cast<float>(parts.scale[part]);
    float least = least_factor * static_cast<float>(parts.least[part]);
    const std::byte* from = packed + part / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      int value = part % 2 == 0 ? low_bits(from[i]) : high_bits(from[i]);
      if (fifth != nullptr) value |= (std::to_integer<int>(fifth[i]) >> part & 1) << 4;
      *out++ = scale * static_cast<float>(value) - least;
    }
  }
}

/// 256 values of 6 bits: four low ones in 128 bytes, two high ones in 64, a scale of 8 bits for each 16.
void decode_six_bits(const std::byte* block, float* out) {
  const std::byte *low = block, *high = block + 128, *scales = block + 192;
  float factor = half_at(block + 208);
  for (int half = 0; half < 2; ++half, low += 64, high += 32, scales += 8) {
    for (int part = 0; part < 4; ++part) {
      const std::byte* from = low + part % 2 * 32;
      for (int i = 0; i < 32; ++i) {
        int value = part < 2 ? low_bits(from[i]) : high_bits(from[i]);
        value |= (std::to_integer<int>(high[i]) >> (2 * part) & 3) << 4;
        float scale = factor * static_cast<float>(static_cast<int8_t>(scales[part * 2 + i / 16]));
        *out++ = scale * static_cast<float>(value - 32);
      }
    }
  }
}

}  // namespace

BlockLayout layout_of(BlockFormat kind) {
  constexpr std::array<BlockLayout, 9> kLayouts = {{{"", 1, 1},
                                                    {"Q4_0", 32, 18},
                                                    {"Q4_1", 32, 20},
                                                    {"Q5_0", 32, 22},
                                                    {"Q5_1", 32, 24},
                                                    {"Q8_0", 32, 34},
                                                    {"Q4_K", 256, 144},
                                                    {"Q5_K", 256, 176},
                                                    {"Q6_K", 256, 210}}};
  return kLayouts[static_cast<size_t>(kind)];
}

void decode_block(BlockFormat kind, const std::byte* block, float* out) {
  switch (kind) {
    case BlockFormat::kNone: return;
    case BlockFormat::kQ40: return decode_centred(block, block + 2, nullptr, 8, out);
    case BlockFormat::kQ41: return decode_shifted(block, block + 4, nullptr, out);
    case BlockFormat::kQ50: return decode_centred(block, block + 6, block + 2, 16, out);
    case BlockFormat::kQ51: return decode_shifted(block, block + 8, block + 4, out);
    case BlockFormat::kQ80: {
      float factor = half_at(block);
      for (int i = 0; i < kSmallBlock; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * factor;
      return;
    }
    case BlockFormat::kQ4K: return decode_parts(block, nullptr, block + 16, out);
    case BlockFormat::kQ5K: return decode_parts(block, block + 16, block + 48, out);
    case BlockFormat::kQ6K: return decode_six_bits(block, out);
  }
}

}  // namespace argosy
