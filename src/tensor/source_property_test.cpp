// Random recipes against the same steps done element by element, through random ranges, boxes and scratch sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/check.h"
#include "tensor/cast.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

#if defined(__OPTIMIZE__)
constexpr uint32_t kRecipes = 3000;
#else
constexpr uint32_t kRecipes = 500;
#endif

struct Pair {
  TensorSourcePtr source;
  PlainTensor plain;
};

class RandomRecipes {
 public:
  explicit RandomRecipes(uint32_t seed) : random_(seed) {}

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Pair make(int depth) {
    if (depth == 0) return leaf(random_dtype(), random_shape());
    Pair in = make(depth - 1);
    auto rank = static_cast<int64_t>(in.plain.shape.size());
    switch (pick(0, 5)) {
      case 0: {
        std::vector<int> permutation(static_cast<size_t>(rank));
        std::iota(permutation.begin(), permutation.end(), 0);
        std::ranges::shuffle(permutation, random_);
        return {transposed(in.source, permutation).value(), plain_transpose(in.plain, permutation)};
      }
      case 1: {
        if (rank == 0) return in;
        auto dim = static_cast<size_t>(pick(0, rank - 1));
        int64_t size = in.plain.shape[dim];
        int64_t length = pick(size > 0 ? 1 : 0, size), start = pick(0, size - length);
        return {sliced(in.source, static_cast<int>(dim), start, length).value(),
                plain_slice(in.plain, dim, start, length)};
      }
      case 2: {
        std::vector<int64_t> shape = factors(in.plain.elements());
        return {reshaped(in.source, shape).value(), PlainTensor{in.plain.dtype, shape, in.plain.bytes}};
      }
      case 3: {
        if (rank == 0) return in;
        auto dim = static_cast<size_t>(pick(0, rank - 1));
        std::vector<TensorSourcePtr> sources = {in.source};
        std::vector<PlainTensor> plains = {in.plain};
        for (int64_t i = pick(1, 3); i > 0; --i) {
          std::vector<int64_t> shape = in.plain.shape;
          shape[dim] = pick(0, 4);
          Pair other = leaf(in.plain.dtype, shape);
          bool is_first = pick(0, 1) == 0;
          sources.insert(is_first ? sources.begin() : sources.end(), other.source);
          plains.insert(is_first ? plains.begin() : plains.end(), other.plain);
        }
        return {concatenated(sources, static_cast<int>(dim)).value(), plain_concat(plains, dim)};
      }
      case 4: {
        auto dim = static_cast<size_t>(pick(0, rank));
        std::vector<TensorSourcePtr> sources = {in.source};
        std::vector<PlainTensor> plains = {in.plain};
        for (int64_t i = pick(0, 3); i > 0; --i) {
          Pair other = leaf(in.plain.dtype, in.plain.shape);
          sources.push_back(other.source);
          plains.push_back(other.plain);
        }
        return {stacked(sources, static_cast<int>(dim)).value(), plain_stack(plains, dim)};
      }
      default: {
        DType dtype = random_dtype();
        if (!can_cast(in.plain.dtype, dtype)) return in;
        return {converted(in.source, dtype).value(), plain_cast(in.plain, dtype)};
      }
    }
  }

 private:
  DType random_dtype() {
    static constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64,  DType::kBool,
                                       DType::kU8,  DType::kI32, DType::kI64,  DType::kC128, DType::kF8E5M2};
    return kTypes[pick(0, std::ssize(kTypes) - 1)];
  }

  std::vector<int64_t> random_shape() {
    std::vector<int64_t> shape(static_cast<size_t>(pick(0, 4)));
    for (int64_t& dim : shape) dim = pick(0, 9) == 0 ? 1 : pick(0, 60) == 0 ? 0 : pick(1, 7);
    if (pick(0, 4) == 0 && !shape.empty()) shape.back() = pick(60, 150);  // larger than a tile
    return shape;
  }

  // A random shape of so many elements.
  std::vector<int64_t> factors(int64_t count) {
    std::vector<int64_t> shape;
    if (count == 0) return {0, 3};
    for (int64_t i = pick(0, 3); i > 0; --i) {
      int64_t factor = pick(1, std::min<int64_t>(count, 12));
      while (count % factor != 0) --factor;
      shape.push_back(factor);
      count /= factor;
    }
    shape.push_back(count);
    std::ranges::shuffle(shape, random_);
    return shape;
  }

  Pair leaf(DType dtype, std::vector<int64_t> shape) {
    PlainTensor plain{dtype, std::move(shape), {}};
    plain.bytes.resize(static_cast<size_t>(plain.elements()) * plain.element_size());
    for (std::byte& byte : plain.bytes) byte = static_cast<std::byte>(random_());
    return {literal(plain.bytes, plain.dtype, plain.shape).value(), plain};
  }

  std::mt19937 random_;
};

void check_stream(RandomRecipes& random, const Pair& pair, int& streams) {
  int64_t total = pair.plain.elements(), size = static_cast<int64_t>(pair.plain.element_size());
  int64_t first = random.pick(0, total), count = random.pick(0, total - first);
  auto scratch = static_cast<size_t>(random.pick(64, random.pick(0, 1) == 0 ? 256 : 4096));
  auto bytes = collect(*pair.source, first, count, scratch);
  if (!bytes) {
    ASSERT_EQ(bytes.error().code, ErrorCode::kInvalidInput);
    ASSERT_NE(bytes.error().message.find("too small"), std::string::npos) << bytes.error().message;
    bytes = collect(*pair.source, first, count, 1 << 20);
    ASSERT_TRUE(bytes.has_value());
  } else {
    ++streams;
  }
  std::vector<std::byte> expected(pair.plain.bytes.begin() + first * size,
                                  pair.plain.bytes.begin() + (first + count) * size);
  ASSERT_EQ(*bytes, expected) << pair.source->recipe() << " from " << first << ", " << count << " elements";
}

// read() must not need more than scratch_for() says: the buffer is just that large.
void check_box(RandomRecipes& random, const Pair& pair) {
  Box box;
  for (int64_t dim : pair.plain.shape) {
    int64_t extent = random.pick(0, 4) == 0 ? dim : random.pick(dim > 0 ? 1 : 0, dim);
    box.extent.push_back(extent);
    box.start.push_back(random.pick(0, dim - extent));
  }
  PlainTensor expected = pair.plain;
  for (size_t d = 0; d < box.start.size(); ++d) expected = plain_slice(expected, d, box.start[d], box.extent[d]);
  std::vector<std::byte> out(expected.bytes.size());
  ExactScratch exact(pair.source->scratch_for(box_elements(box)));
  ASSERT_TRUE(pair.source->read(box, out, exact.scratch).has_value());
  ASSERT_EQ(exact.scratch.mark(), 0u);  // given back
  ASSERT_EQ(out, expected.bytes) << pair.source->recipe();
}

TEST(SourcePropertyTest, random_recipes_give_what_plain_loops_give) {
  int streams = 0, deepest = 0;
  for (uint32_t seed = 0; seed < kRecipes; ++seed) {
    RandomRecipes random(seed);
    Pair pair = random.make(static_cast<int>(random.pick(0, 4)));
    ASSERT_EQ(pair.source->dtype(), pair.plain.dtype);
    ASSERT_TRUE(std::ranges::equal(pair.source->shape(), pair.plain.shape)) << pair.source->recipe();
    deepest = std::max(deepest, pair.source->depth());
    for (int i = 0; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(check_stream(random, pair, streams)) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(check_box(random, pair)) << "seed " << seed;
    }
  }
  EXPECT_GE(deepest, 4);
  EXPECT_GT(streams, static_cast<int>(kRecipes * 3 * 3 / 4));  // the small scratch was enough for most
}

}  // namespace
}  // namespace argosy
