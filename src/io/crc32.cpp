#include "io/crc32.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/processor.h"

namespace argosy {
namespace {

uint32_t portable(uint32_t crc, const std::byte* bytes, size_t size) {
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes), size));
}

#if defined(__x86_64__)

// The CRC is the remainder of the bytes, taken as a polynomial over bits, by P. 16 bytes that lie n bits before others
// may be replaced by their product with x^n mod P, added (xor) to those: a "fold". So everything is folded into the
// last 16 bytes, whose remainder is the same.

constexpr uint32_t kPolynomial = 0x04c11db7;  // P without x^32
constexpr size_t kLanes = 4, kLaneBytes = 16, kBlock = kLanes * kLaneBytes;

/// x^n mod P with its bits in the reverse order, which is that of the CRC, shifted by one since a product of reversed
/// numbers is.
constexpr int64_t folding_factor(int n) {
  uint32_t value = 1;
  for (int i = 0; i < n; ++i) value = (value << 1) ^ ((value >> 31) != 0 ? kPolynomial : 0);
  uint64_t reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= static_cast<uint64_t>((value >> i) & 1) << (31 - i);
  return static_cast<int64_t>(reversed << 1);
}

// The two halves of 16 bytes lie 64 bits apart; the shift by 32 is that of the CRC's own width.
constexpr int kFar = static_cast<int>(kBlock) * 8, kNear = static_cast<int>(kLaneBytes) * 8;
constexpr int64_t kFarFactors[2] = {folding_factor(kFar + 32), folding_factor(kFar - 32)};
constexpr int64_t kNearFactors[2] = {folding_factor(kNear + 32), folding_factor(kNear - 32)};

__attribute__((target("pclmul,sse4.1"))) inline __m128i folded(__m128i value, __m128i onto, __m128i factors) {
  __m128i low = _mm_clmulepi64_si128(value, factors, 0x00);
  __m128i high = _mm_clmulepi64_si128(value, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t folding(uint32_t crc, const std::byte* bytes, size_t size) {
  auto load = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  __m128i lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = load(bytes + i * kLaneBytes);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(~crc)));
  const __m128i far = _mm_set_epi64x(kFarFactors[1], kFarFactors[0]);
  const __m128i near = _mm_set_epi64x(kNearFactors[1], kNearFactors[0]);
  size_t done = kBlock;
  for (; size - done >= kBlock; done += kBlock) {
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = folded(lanes[i], load(bytes + done + i * kLaneBytes), far);
  }
  __m128i last = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) last = folded(last, lanes[i], near);
  for (; size - done >= kLaneBytes; done += kLaneBytes) last = folded(last, load(bytes + done), near);
  std::byte rest[kLaneBytes];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), last);
  // The inverted start is in already; zlib inverts ~0 to a plain zero.
  return portable(portable(~uint32_t{0}, rest, sizeof rest), bytes + done, size - done);
}

#endif

}  // namespace

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (bytes.size() >= kBlock && processor().pclmul) return folding(crc, bytes.data(), bytes.size());
#endif
  return portable(crc, bytes.data(), bytes.size());
}

uint32_t combined_crc32(uint32_t first, uint32_t second, uint64_t second_size) {
  return static_cast<uint32_t>(::crc32_combine(first, second, static_cast<z_off_t>(second_size)));
}

}  // namespace argosy
