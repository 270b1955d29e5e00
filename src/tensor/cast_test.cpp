#include "tensor/cast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"
#include "tensor/cast_reference.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define ARGOSY_SLOW_BUILD 1
#else
#define ARGOSY_SLOW_BUILD 0
#endif

namespace argosy {
namespace {

constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kIntegers[] = {DType::kBool, DType::kU8,  DType::kI8,  DType::kU16, DType::kI16,
                               DType::kU32,  DType::kI32, DType::kU64, DType::kI64};
constexpr CastPath kPaths[] = {CastPath::kBest, CastPath::kPortable};

size_t size_of(DType dtype) { return static_cast<size_t>(bits_of(dtype)) / 8; }

std::vector<std::byte> pack(const std::vector<uint64_t>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(bytes.data() + i * size_of(dtype), &values[i], size_of(dtype));
  return bytes;
}

uint64_t element(const std::vector<std::byte>& bytes, size_t i, DType dtype) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * size_of(dtype), size_of(dtype));
  return bits;
}

// Converts all values on both paths and compares each with the reference.
void expect_reference(const std::vector<uint64_t>& values, DType from, DType to) {
  std::vector<std::byte> in = pack(values, from);
  std::vector<std::byte> out(values.size() * size_of(to));
  for (CastPath path : kPaths) {
    std::ranges::fill(out, std::byte{0xa5});
    cast_elements(from, in, to, out, path);
    for (size_t i = 0; i < values.size(); ++i) {
      uint64_t expected = reference::convert(element(in, i, from), from, to);
      ASSERT_EQ(element(out, i, to), expected)
          << to_text(from) << " to " << to_text(to) << " of bits " << std::hex << element(in, i, from)
          << (path == CastPath::kPortable ? " (portable)" : " (best)");
    }
  }
}

std::vector<uint64_t> all_16_bit() {
  std::vector<uint64_t> values(65536);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i;
  return values;
}

// Values of `from` at, just below and just above every rounding boundary of a 16-bit type.
std::vector<uint64_t> around_midpoints(DType from, DType to) {
  std::vector<uint64_t> values;
  for (uint64_t bits = 0; bits < 0x7fff; ++bits) {
    auto floating = reference::format_of(to);
    if (reference::is_nan(bits, floating)) break;
    long double low = reference::decode(bits, floating), high = reference::decode(bits + 1, floating);
    long double middle = std::isinf(high) ? low + (low - reference::decode(bits - 1, floating)) / 2 : (low + high) / 2;
    if (std::isinf(low)) break;
    uint64_t at = reference::encode(middle, reference::format_of(from));
    for (uint64_t pattern : {at - 1, at, at + 1}) {
      values.push_back(pattern);
      values.push_back(pattern | (uint64_t{1} << (bits_of(from) - 1)));
    }
  }
  return values;
}

TEST(CastTest, converts_every_16_bit_float_in_all_directions) {
  for (DType from : {DType::kF16, DType::kBF16}) {
    for (DType to : kFloats) {
      if (from != to) expect_reference(all_16_bit(), from, to);
    }
  }
}

TEST(CastTest, rounds_at_every_boundary_from_f64) {
  for (DType to : {DType::kF16, DType::kBF16}) expect_reference(around_midpoints(DType::kF64, to), DType::kF64, to);
}

TEST(CastTest, converts_random_and_special_floats) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> doubles, floats;
  for (int i = 0; i < 100000; ++i) {
    uint64_t bits = random();
    doubles.push_back(bits);
    floats.push_back(bits & 0xffffffff);
    // Exponents near those of floats, and fractions that are ties or nearly.
    uint64_t exponent = 1023 - 150 + random() % 280;
    doubles.push_back((bits & 0x800fffffffffffff) | (exponent << 52));
    doubles.push_back((bits & 0x800fffffe0000000) | (exponent << 52) | 0x10000000 | (bits & 1));
  }
  for (uint64_t bits :
       {0x0ull, 0x1ull, 0xfffffffffffffull, 0x10000000000000ull, 0x7fefffffffffffffull, 0x7ff0000000000000ull,
        0x7ff0000000000001ull, 0x7ff8000000000000ull, 0x7fffffffffffffffull, 0x47efffffe0000000ull,
        0x47efffffefffffffull, 0x47effffff0000000ull, 0x3690000000000000ull, 0x3690000000000001ull}) {
    doubles.push_back(bits);
    doubles.push_back(bits | 0x8000000000000000ull);
  }
  for (DType to : {DType::kF32, DType::kF16, DType::kBF16}) expect_reference(doubles, DType::kF64, to);
  expect_reference(floats, DType::kF32, DType::kF64);
}

// ---- All patterns of f32 ----

// The magnitudes of f32 up to `last` that round to one value of a 16-bit type, in ascending order: found from the
// midpoints between its neighbours, so that four thousand million patterns need not be rounded one by one.
struct RoundingRun {
  uint32_t last;
  uint16_t value;
};

std::vector<RoundingRun> rounding_runs(DType to) {
  auto floating = reference::format_of(to);
  std::vector<RoundingRun> runs;
  uint16_t infinity = static_cast<uint16_t>(reference::encode(INFINITY, floating));
  for (uint16_t value = 0; value < infinity; ++value) {
    long double low = reference::decode(value, floating);
    // Above the largest finite value the spacing goes on as if there were another.
    long double high = value + 1 < infinity ? reference::decode(value + 1u, floating)
                                            : 2 * low - reference::decode(value - 1u, floating);
    auto middle = std::bit_cast<uint32_t>(static_cast<float>((low + high) / 2));
    runs.push_back({value % 2 == 0 ? middle : middle - 1, value});
  }
  runs.push_back({0x7f800000, infinity});
  return runs;
}

// All patterns of one sign, in chunks of which every `step`-th is taken.
void expect_all_f32(DType to, CastPath path, uint32_t sign, uint32_t step) {
  constexpr uint32_t kChunk = 1 << 12;
  std::vector<RoundingRun> runs = rounding_runs(to);
  std::vector<uint32_t> in(kChunk);
  std::vector<uint16_t> out(kChunk), expected(kChunk);
  size_t run = 0, filled = runs.size();  // the run that fills all of `expected`
  for (uint32_t begin = 0; begin < 0x80000000; begin += step * kChunk) {
    while (run < runs.size() && runs[run].last < begin) ++run;
    for (uint32_t i = 0; i < kChunk; ++i) in[i] = sign | (begin + i);
    for (uint32_t i = 0; i < kChunk;) {
      uint32_t end = kChunk;
      if (run < runs.size()) {
        end = std::min(kChunk, runs[run].last - begin + 1);
        bool is_whole = i == 0 && end == kChunk;
        auto value = static_cast<uint16_t>((sign >> 16) | runs[run].value);
        if (!is_whole || filled != run) std::fill(expected.begin() + i, expected.begin() + end, value);
        filled = is_whole ? run : runs.size();
        if (begin + end == runs[run].last + 1) ++run;
      } else {
        for (uint32_t k = i; k < end; ++k) {
          expected[k] = static_cast<uint16_t>(
              reference::convert_nan(in[k], reference::format_of(DType::kF32), reference::format_of(to)));
        }
      }
      i = end;
    }
    cast_elements(DType::kF32, std::as_bytes(std::span(in)), to, std::as_writable_bytes(std::span(out)), path);
    if (std::memcmp(out.data(), expected.data(), kChunk * sizeof(uint16_t)) == 0) continue;
    size_t at = static_cast<size_t>(std::ranges::mismatch(out, expected).in1 - out.begin());
    FAIL() << to_text(to) << " of f32 bits " << std::hex << in[at] << " is " << out[at] << ", not " << expected[at];
  }
}

TEST(CastTest, runs_of_the_reference_agree_with_the_reference) {
  for (DType to : {DType::kF16, DType::kBF16}) {
    uint32_t first = 0;
    for (const RoundingRun& run : rounding_runs(to)) {
      ASSERT_LE(first, run.last);
      ASSERT_EQ(reference::convert(first, DType::kF32, to), run.value);
      ASSERT_EQ(reference::convert(run.last, DType::kF32, to), run.value);
      first = run.last + 1;
    }
  }
}

// All builds take both sides of every rounding boundary on both paths. Between them, optimised builds take every fifth
// chunk of the 2^32 patterns (every 41st on the portable path), others every 100,003rd pattern.
TEST(CastTest, converts_f32_to_16_bits) {
  for (DType to : {DType::kF16, DType::kBF16}) {
    if (ARGOSY_SLOW_BUILD) {
      std::vector<uint64_t> values = around_midpoints(DType::kF32, to);
      for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 100003) values.push_back(bits);
      expect_reference(values, DType::kF32, to);
    } else {
      expect_reference(around_midpoints(DType::kF32, to), DType::kF32, to);
      for (CastPath path : kPaths) {
        uint32_t step = path == CastPath::kBest ? 31 : 251;
        std::thread negative([&] { expect_all_f32(to, path, 0x80000000, step); });
        expect_all_f32(to, path, 0, step);
        negative.join();
      }
    }
  }
}

TEST(CastTest, rounds_one_value_as_all) {
  for (DType to : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (uint64_t pattern : around_midpoints(DType::kF32, DType::kF16)) {
      auto value = std::bit_cast<float>(static_cast<uint32_t>(pattern));
      std::byte narrow[2];
      float expected = value;
      if (to != DType::kF32) {
        cast_elements(DType::kF32, std::as_bytes(std::span(&value, 1)), to, narrow);
        cast_elements(to, narrow, DType::kF32, std::as_writable_bytes(std::span(&expected, 1)));
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(rounded_to(value, to)), std::bit_cast<uint32_t>(expected)) << pattern;
    }
  }
}

// ---- 8 bits and less ----

std::vector<std::byte> all_bytes() {
  std::vector<std::byte> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

// What the formats' definitions say: bias 7, no infinities, one NaN of each sign; an exponent alone with bias 127.
long double decode_e4m3(int bits) {
  int exponent = bits >> 3 & 15, fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return NAN;
  long double value = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80) != 0 ? -value : value;
}

long double decode_e8m0(int bits) { return bits == 255 ? NAN : std::ldexp(1.0L, bits - 127); }

TEST(CastTest, converts_every_8_bit_float) {
  for (DType to : kFloats) {
    using Decode = long double (*)(int);
    for (auto [from, decode] : {std::pair<DType, Decode>(DType::kF8E4M3FN, decode_e4m3),
                                std::pair<DType, Decode>(DType::kF8E8M0FNU, decode_e8m0)}) {
      for (CastPath path : kPaths) {
        std::vector<std::byte> out(256 * size_of(to));
        cast_elements(from, all_bytes(), to, out, path);
        for (int bits = 0; bits < 256; ++bits) {
          uint64_t found = element(out, static_cast<size_t>(bits), to);
          long double value = decode(bits);
          if (std::isnan(value)) {
            EXPECT_TRUE(reference::is_nan(found, reference::format_of(to))) << to_text(from) << bits;
          } else {
            EXPECT_EQ(found, reference::encode(value, reference::format_of(to)))
                << to_text(from) << " " << bits << " to " << to_text(to);
          }
        }
      }
    }
    std::vector<uint64_t> values(256);
    for (size_t i = 0; i < values.size(); ++i) values[i] = i;
    expect_reference(values, DType::kF8E5M2, to);
  }
}

TEST(CastTest, unpacks_elements_of_less_than_a_byte) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<std::byte> in = all_bytes(), out(512), floats(512 * 4);
  cast_elements(DType::kF4E2M1, in, DType::kF8E4M3FN, out);
  cast_elements(DType::kF8E4M3FN, out, DType::kF32, floats);
  for (size_t i = 0; i < 512; ++i) {
    auto bits = static_cast<size_t>(i / 2 >> (i % 2 * 4) & 15);
    float value = std::bit_cast<float>(static_cast<uint32_t>(element(floats, i, DType::kF32)));
    EXPECT_EQ(value, (bits & 8 ? -1 : 1) * kValues[bits & 7]);
    EXPECT_EQ(std::signbit(value), (bits & 8) != 0);
  }
  cast_elements(DType::kU4, in, DType::kU8, out);
  for (size_t i = 0; i < 512; ++i) EXPECT_EQ(static_cast<size_t>(out[i]), i / 2 >> (i % 2 * 4) & 15);
  cast_elements(DType::kI4, in, DType::kI8, out);
  for (size_t i = 0; i < 512; ++i) {
    int value = static_cast<int>(i / 2 >> (i % 2 * 4) & 15);
    EXPECT_EQ(static_cast<int8_t>(out[i]), value < 8 ? value : value - 16);
  }
  out.resize(1024);
  cast_elements(DType::kU2, in, DType::kU8, out);
  for (size_t i = 0; i < 1024; ++i) EXPECT_EQ(static_cast<size_t>(out[i]), i / 4 >> (i % 4 * 2) & 3);
  cast_elements(DType::kI2, in, DType::kI8, out);
  for (size_t i = 0; i < 1024; ++i) {
    int value = static_cast<int>(i / 4 >> (i % 4 * 2) & 3);
    EXPECT_EQ(static_cast<int8_t>(out[i]), value < 2 ? value : value - 4);
  }
}

// ---- Integers ----

TEST(CastTest, converts_integers_by_value) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 65536; i += 7) values.push_back(i);
  for (int i = 0; i < 5000; ++i) values.push_back(random() >> (random() % 64));
  for (int bit = 0; bit < 64; ++bit) {
    uint64_t power = uint64_t{1} << bit;
    // Powers of two and the ties between their neighbours in bf16, f16, f32 and f64, one off to both sides.
    for (uint64_t tie : {power, power + (power >> 8), power + (power >> 11), power + (power >> 24),
                         power + (power >> 53), power + (power >> 7) + (power >> 8)}) {
      for (uint64_t value : {tie - 1, tie, tie + 1}) {
        values.push_back(value);
        values.push_back(~value + 1);
      }
    }
  }
  int pairs = 0;
  for (DType from : kIntegers) {
    for (DType to : kFloats) expect_reference(values, from, to), ++pairs;
    for (DType to : kIntegers) {
      if (can_cast(from, to)) expect_reference(values, from, to), ++pairs;
    }
  }
  EXPECT_EQ(pairs, 36 + 8 + 18);  // to floats, from bool, and widening: 6 + 3 + 4 + 2 + 2 + 1
}

TEST(CastTest, gives_the_same_bits_in_any_float_mode) {
  std::vector<uint64_t> subnormals, ties = {0x3f808000, 0x3f818000, 0x3f801000, 0x3f803000};
  for (uint64_t i = 0; i < 4000; ++i) subnormals.push_back(i * 2099);
  std::vector<uint64_t> doubles = {0x3ff0000010000000, 0xbff0000030000000, 0x36a8000000000000};
  std::fenv_t saved;
  std::fegetenv(&saved);
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    for (DType to : {DType::kF16, DType::kBF16}) {
      for (const auto& values : {subnormals, ties}) {
        std::vector<std::byte> in = pack(values, DType::kF32), expected(values.size() * 2), out(values.size() * 2);
        for (CastPath path : kPaths) {
          cast_elements(DType::kF32, in, to, expected, path);
          std::fesetround(mode);
          cast_elements(DType::kF32, in, to, out, path);
          EXPECT_EQ(std::fegetround(), mode);  // and the host keeps its mode
          std::fesetenv(&saved);
          EXPECT_EQ(out, expected);
        }
      }
    }
    std::vector<std::byte> in = pack(doubles, DType::kF64), out(doubles.size() * 4);
    std::fesetround(mode);
    cast_elements(DType::kF64, in, DType::kF32, out);
    std::fesetenv(&saved);
    for (size_t i = 0; i < doubles.size(); ++i) {
      EXPECT_EQ(element(out, i, DType::kF32), reference::convert(doubles[i], DType::kF64, DType::kF32));
    }
  }
}

TEST(CastTest, takes_any_alignment_and_count) {
  std::mt19937 random(3);
  for (size_t count = 0; count < 40; ++count) {
    std::vector<uint64_t> values(count);
    for (uint64_t& value : values) value = random();
    std::vector<std::byte> in = pack(values, DType::kF32), shifted(in.size() + 1), out(count * 2 + 3, std::byte{0x5a});
    std::ranges::copy(in, shifted.begin() + 1);
    for (CastPath path : kPaths) {
      cast_elements(DType::kF32, std::span(shifted).subspan(1), DType::kF16, std::span(out).subspan(1, count * 2),
                    path);
      for (size_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, out.data() + 1 + 2 * i, 2);
        EXPECT_EQ(bits, reference::convert(values[i], DType::kF32, DType::kF16));
      }
      EXPECT_EQ(out.front(), std::byte{0x5a});
      EXPECT_EQ(out[out.size() - 2], std::byte{0x5a});
    }
  }
}

TEST(CastTest, knows_which_casts_lose_nothing) {
  EXPECT_TRUE(is_exact_cast(DType::kF16, DType::kF32));
  EXPECT_TRUE(is_exact_cast(DType::kBF16, DType::kF64));
  EXPECT_TRUE(is_exact_cast(DType::kU8, DType::kBF16));
  EXPECT_TRUE(is_exact_cast(DType::kI16, DType::kI32));
  EXPECT_TRUE(is_exact_cast(DType::kF8E4M3FN, DType::kBF16));
  EXPECT_TRUE(is_exact_cast(DType::kF8E5M2, DType::kF16));
  EXPECT_FALSE(is_exact_cast(DType::kF8E8M0FNU, DType::kF16));
  EXPECT_FALSE(is_exact_cast(DType::kF16, DType::kBF16));
  EXPECT_FALSE(is_exact_cast(DType::kI16, DType::kF16));
  EXPECT_FALSE(is_exact_cast(DType::kI32, DType::kF32));
  EXPECT_FALSE(is_exact_cast(DType::kF32, DType::kF16));
}

TEST(CastTest, rejects_what_could_lose_values_or_is_not_supported) {
  EXPECT_FALSE(can_cast(DType::kF32, DType::kF32));
  EXPECT_FALSE(can_cast(DType::kF32, DType::kI32));
  EXPECT_FALSE(can_cast(DType::kF32, DType::kBool));
  EXPECT_FALSE(can_cast(DType::kI64, DType::kI32));
  EXPECT_FALSE(can_cast(DType::kU8, DType::kI8));
  EXPECT_FALSE(can_cast(DType::kI8, DType::kU8));
  EXPECT_FALSE(can_cast(DType::kI8, DType::kU64));
  EXPECT_FALSE(can_cast(DType::kI8, DType::kBool));
  EXPECT_FALSE(can_cast(DType::kF32, DType::kC64));
  EXPECT_FALSE(can_cast(DType::kF32, DType::kF8E4M3FN));
  EXPECT_FALSE(can_cast(DType::kF8E4M3FN, DType::kF8E5M2));
  EXPECT_FALSE(can_cast(DType::kF8E4M3FNUZ, DType::kF32));
  EXPECT_FALSE(can_cast(DType::kU4, DType::kF32));
  EXPECT_FALSE(can_cast(DType::kU4, DType::kI8));
  EXPECT_FALSE(can_cast(DType::kU3, DType::kU8));
  std::vector<std::byte> bytes(8);
  EXPECT_THROW(cast_elements(DType::kF32, bytes, DType::kI32, bytes), InternalError);
  EXPECT_THROW(cast_elements(DType::kF32, bytes, DType::kF16, bytes), InternalError);
}

}  // namespace
}  // namespace argosy
