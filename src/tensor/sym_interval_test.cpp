#include "tensor/sym_interval.h"

#include <gtest/gtest.h>

#include <limits>

namespace argosy {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(SymIntervalTest, contains_every_value_of_small_ranges) {
  using Operation = SymRange (*)(SymRange, SymRange);
  struct Case {
    Operation interval;
    std::optional<int64_t> (*exact)(int64_t, int64_t);
  };
  const Case kCases[] = {
      {interval_add, [](int64_t a, int64_t b) { return std::optional(a + b); }},
      {interval_mul, [](int64_t a, int64_t b) { return std::optional(a * b); }},
      {interval_floor_div,
       [](int64_t a, int64_t b) {
         return b == 0 ? std::nullopt : std::optional(static_cast<int64_t>(floor_quotient(a, b)));
       }},
      {interval_mod,
       [](int64_t a, int64_t b) {
         return b == 0 ? std::nullopt : std::optional(static_cast<int64_t>(floor_remainder(a, b)));
       }},
      {interval_pow,
       [](int64_t a, int64_t b) -> std::optional<int64_t> {
         if (b < 0) return std::nullopt;
         int64_t power = 1;
         for (int64_t i = 0; i < b; ++i) power *= a;
         return power;
       }},
      {interval_min, [](int64_t a, int64_t b) { return std::optional(std::min(a, b)); }},
      {interval_max, [](int64_t a, int64_t b) { return std::optional(std::max(a, b)); }},
  };
  constexpr int64_t kEnd = 4;
  for (const Case& test : kCases) {
    // The outermost ends also stand for "no bound": every value inside must still be enclosed.
    auto widened = [](int64_t low, int64_t high) {
      return SymRange{low == -kEnd ? SymRange::kNoMin : low, high == kEnd ? SymRange::kNoMax : high};
    };
    for (int64_t a = -kEnd; a <= kEnd; ++a) {
      for (int64_t b = a; b <= kEnd; ++b) {
        for (int64_t c = -kEnd; c <= kEnd; ++c) {
          for (int64_t d = c; d <= kEnd; ++d) {
            SymRange tight = test.interval({a, b}, {c, d});
            SymRange wide = test.interval(widened(a, b), widened(c, d));
            for (int64_t x = a; x <= b; ++x) {
              for (int64_t y = c; y <= d; ++y) {
                auto value = test.exact(x, y);
                if (!value) continue;
                ASSERT_TRUE(tight.min <= *value && *value <= tight.max) << a << b << c << d << ' ' << x << ' ' << y;
                ASSERT_TRUE(wide.min <= *value && *value <= wide.max) << a << b << c << d << ' ' << x << ' ' << y;
              }
            }
          }
        }
      }
    }
  }
}

TEST(SymIntervalTest, saturates) {
  EXPECT_EQ(interval_add({kHighest - 1, kHighest - 1}, {1, 5}), (SymRange{kHighest, SymRange::kNoMax}));
  EXPECT_EQ(interval_mul({-kHighest, -kHighest}, {2, 2}), (SymRange{SymRange::kNoMin, kLowest}));
  EXPECT_EQ(interval_mul({0, SymRange::kNoMax}, {0, 0}), (SymRange{0, 0}));
  EXPECT_EQ(interval_pow({-10, 10}, {30, 31}), SymRange{});
  EXPECT_EQ(interval_pow({10, 10}, {30, 30}), (SymRange{kHighest, SymRange::kNoMax}));
}

}  // namespace
}  // namespace argosy
