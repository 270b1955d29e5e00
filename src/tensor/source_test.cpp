#include "tensor/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "base/check.h"
#include "tensor/permute.h"
#include "tensor/quantize_source.h"
#include "tensor/sha256.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

TensorSourcePtr named(std::string name, DType dtype, std::vector<int64_t> shape) {
  return std::make_shared<CountingSource>(counting_tensor(dtype, std::move(shape)), std::move(name));
}

TensorSourcePtr in_file(std::vector<int64_t> shape, uint64_t offset, std::string path = "m.safetensors") {
  PlainTensor tensor = counting_tensor(DType::kF32, std::move(shape));
  FileRange range{path, offset, tensor.bytes.size()};
  return std::make_shared<CountingSource>(std::move(tensor), "file", range);
}

// The error of a recipe that must not be built.
template <class T>
Error rejected(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error() : result.error();
}

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// ---- Texts and simplification ----

TEST(SourceTest, recipes_read_like_their_construction) {
  auto a = named("a", DType::kF32, {2, 3}), b = named("b", DType::kF32, {2, 3});
  EXPECT_EQ((*transposed(*concatenated({a, b}, 0), {1, 0}))->recipe(), "transpose(concat(dim=0, a, b), [1, 0])");
  EXPECT_EQ((*converted(*stacked({a, b}, 2), DType::kBF16))->recipe(), "cast(stack(dim=2, a, b), bf16)");
  EXPECT_EQ((*sliced(*reshaped(a, {3, 2}), 0, 1, 2))->recipe(), "slice(reshape(a, [3, 2]), dim=0, start=1, length=2)");
  EXPECT_EQ(group_output(*quantized_blocks(a, {.method = {}, .block = 8}), 1)->recipe(),
            "quantize(a, largest bits=4, block=8, form=3, scales=f32)[1]");
  std::vector<std::byte> bytes(4);
  EXPECT_EQ((*borrowed(bytes, DType::kF32, {1}, "w\"1"))->recipe(), "memory(\"w\\\"1\", f32[1])");
  EXPECT_EQ((*shape_only(DType::kI4, {3, 2}, "w"))->recipe(), "shape_only(\"w\", i4[3, 2])");
  EXPECT_EQ((*literal(bytes, DType::kI32, {}))->recipe(),
            "literal(i32[], sha256:df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119)");
}

TEST(SourceTest, recipes_that_change_nothing_are_the_source_itself) {
  auto a = named("a", DType::kF32, {2, 3});
  EXPECT_EQ(*transposed(a, {0, 1}), a);
  EXPECT_EQ(*transposed(*transposed(a, {1, 0}), {1, 0}), a);
  EXPECT_EQ(*reshaped(a, {2, 3}), a);
  EXPECT_EQ(*reshaped(*reshaped(a, {6}), {2, 3}), a);
  EXPECT_EQ(*sliced(a, 1, 0, 3), a);
  EXPECT_EQ(*converted(a, DType::kF32), a);
  EXPECT_EQ(*concatenated({a}, 1), a);
  EXPECT_EQ(*concatenated({a, named("empty", DType::kF32, {0, 3})}, 0), a);
}

TEST(SourceTest, nested_recipes_merge_where_exact) {
  auto a = named("a", DType::kBF16, {4, 1, 6}), b = named("b", DType::kBF16, {4, 1, 6});
  auto c = named("c", DType::kBF16, {4, 3, 6});
  EXPECT_EQ((*transposed(*transposed(c, {2, 0, 1}), {1, 2, 0}))->recipe(), "c");
  EXPECT_EQ((*transposed(*transposed(c, {2, 0, 1}), {1, 0, 2}))->recipe(), "transpose(c, [0, 2, 1])");
  EXPECT_EQ((*transposed(a, {1, 0, 2}))->recipe(), "reshape(a, [1, 4, 6])");
  EXPECT_EQ((*reshaped(*reshaped(a, {24}), {8, 3}))->recipe(), "reshape(a, [8, 3])");
  EXPECT_EQ((*sliced(*sliced(a, 2, 1, 4), 2, 1, 2))->recipe(), "slice(a, dim=2, start=2, length=2)");
  EXPECT_EQ((*concatenated({*concatenated({a, b}, 0), a}, 0))->recipe(), "concat(dim=0, a, b, a)");
  EXPECT_EQ((*concatenated({*concatenated({a, b}, 0), *concatenated({b, a}, 0)}, 1))->recipe(),
            "concat(dim=1, concat(dim=0, a, b), concat(dim=0, b, a))");
  EXPECT_EQ((*stacked({a}, 0))->recipe(), "reshape(a, [1, 4, 1, 6])");
  EXPECT_EQ((*converted(*converted(a, DType::kF32), DType::kF16))->recipe(), "cast(a, f16)");
  // A cast that rounds stays, and so does the way back, which makes NaNs quiet.
  EXPECT_EQ((*converted(*converted(a, DType::kF16), DType::kF32))->recipe(), "cast(cast(a, f16), f32)");
  EXPECT_EQ((*converted(*converted(a, DType::kF32), DType::kBF16))->recipe(), "cast(cast(a, f32), bf16)");
}

TEST(SourceTest, file_ranges_survive_what_keeps_the_bytes) {
  auto a = in_file({4, 6}, 1000);
  auto range = (*sliced(a, 0, 1, 2))->file_range();
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->path, "m.safetensors");
  EXPECT_EQ(range->offset, 1000u + 24);
  EXPECT_EQ(range->size, 48u);
  range = (*sliced(*reshaped(*sliced(a, 0, 2, 2), {1, 12}), 1, 3, 5))->file_range();
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->offset, 1000u + 48 + 12);
  EXPECT_EQ(range->size, 20u);
  EXPECT_FALSE((*sliced(a, 1, 0, 2))->file_range().has_value());
  EXPECT_FALSE((*transposed(a, {1, 0}))->file_range().has_value());
  EXPECT_FALSE((*converted(a, DType::kF16))->file_range().has_value());
  // Neighbours in one file join; others do not.
  range = (*concatenated({a, in_file({1, 6}, 1096)}, 0))->file_range();
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->offset, 1000u);
  EXPECT_EQ(range->size, 120u);
  EXPECT_TRUE((*stacked({a, in_file({4, 6}, 1096)}, 0))->file_range().has_value());
  EXPECT_FALSE((*stacked({a, in_file({4, 6}, 1096)}, 1))->file_range().has_value());
  EXPECT_FALSE((*concatenated({a, in_file({1, 6}, 1100)}, 0))->file_range().has_value());
  EXPECT_FALSE((*concatenated({a, in_file({1, 6}, 1096, "other")}, 0))->file_range().has_value());
  EXPECT_FALSE((*concatenated({a, in_file({4, 1}, 1096)}, 1))->file_range().has_value());
}

// ---- How much is read, and in which pieces ----

TEST(SourceTest, covers_any_range_by_few_boxes) {
  std::vector<int64_t> shape = {5, 4, 3, 7};
  Box box;
  for (int64_t first = 0; first < 420; ++first) {
    for (int64_t count = 1; count <= 420 - first; ++count) {
      int boxes = 0;
      for (int64_t done = 0; done < count; ++boxes) {
        int64_t step = contiguous_box(shape, first + done, count - done, box);
        ASSERT_EQ(step, box_elements(box));
        done += step;
      }
      ASSERT_LE(boxes, 2 * 4 + 1);
    }
  }
}

TEST(SourceTest, reshape_reads_whole_boxes_of_its_input) {
  // A block of columns of some heads is one box of the matrix, whatever the heads.
  auto matrix = std::make_shared<CountingSource>(counting_tensor(DType::kU16, {8, 12}), "m");
  auto heads = *reshaped(matrix, {2, 4, 3, 4});
  std::vector<std::byte> out(2 * 4 * 2);
  Scratch scratch({});
  ASSERT_TRUE(heads->read({{1, 0, 1, 2}, {1, 4, 1, 2}}, out, scratch).has_value());
  EXPECT_EQ(matrix->reads, 1);
  // A contiguous range that does not fit the input's dims takes a few.
  auto flat = *reshaped(matrix, {96});
  std::vector<std::byte> range(2 * 50);
  ASSERT_TRUE(flat->read({{5}, {50}}, range, scratch).has_value());
  EXPECT_EQ(matrix->reads, 1 + 3);  // rest of a row, whole rows, part of a row
}

TEST(SourceTest, joins_read_only_what_a_box_touches) {
  auto a = std::make_shared<CountingSource>(counting_tensor(DType::kU8, {4, 6}), "a");
  auto b = std::make_shared<CountingSource>(counting_tensor(DType::kU8, {3, 6}), "b");
  auto joined = *concatenated({a, b}, 0);
  ASSERT_TRUE(collect(*joined, 24, 18, 4096).has_value());
  EXPECT_EQ(a->reads, 0);
  EXPECT_EQ(b->elements_read, 18);
}

TEST(SourceTest, streams_read_each_element_once) {
  auto a = std::make_shared<CountingSource>(counting_tensor(DType::kF32, {64, 48}), "a");
  auto b = std::make_shared<CountingSource>(counting_tensor(DType::kF32, {64, 48}), "b");
  auto recipe = *converted(*transposed(*stacked({a, b}, 0), {2, 0, 1}), DType::kF16);
  size_t largest = 0;
  auto sink = [&](std::span<const std::byte> part) {
    largest = std::max(largest, part.size());
    return Status{};
  };
  ASSERT_TRUE(recipe->stream_to(sink, 4096).has_value());
  EXPECT_EQ(a->elements_read, 64 * 48);
  EXPECT_EQ(b->elements_read, 64 * 48);
  // 10 bytes of buffer per element (output, cast, transpose): 409 elements fit, of which 384 are whole rows.
  EXPECT_EQ(largest, 384u * 2);
}

TEST(SourceTest, streams_in_parallel_ranges) {
  PlainTensor a = counting_tensor(DType::kF32, {40, 30}), b = counting_tensor(DType::kF32, {40, 30});
  auto recipe = *converted(
      *transposed(*concatenated({*literal(a.bytes, a.dtype, a.shape), *literal(b.bytes, b.dtype, b.shape)}, 1), {1, 0}),
      DType::kBF16);
  std::vector<std::byte> expected = *collect(*recipe), out(expected.size());
  int64_t total = recipe->elements(), share = total / 4;
  std::vector<std::thread> workers;
  for (int64_t worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&, worker] {
      std::byte* next = out.data() + worker * share * 2;
      auto sink = [&](std::span<const std::byte> part) {
        next = std::ranges::copy(part, next).out;
        return Status{};
      };
      for (int round = 0; round < 20; ++round) {
        next = out.data() + worker * share * 2;
        EXPECT_TRUE(recipe->stream_range(worker * share, share, sink, 1024).has_value());
        EXPECT_FALSE(recipe->recipe().empty());
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(out, expected);
}

TEST(SourceTest, stops_at_the_first_error_of_the_sink) {
  auto source = named("a", DType::kU8, {1000});
  int calls = 0;
  auto sink = [&](std::span<const std::byte>) -> Status {
    ++calls;
    return fail(ErrorCode::kIo, "disk full");
  };
  auto status = source->stream_to(sink, 64);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(calls, 1);
}

TEST(SourceTest, borrowed_keeps_its_owner_alive) {
  auto owner = std::make_shared<std::vector<std::byte>>(8, std::byte{7});
  std::weak_ptr<std::vector<std::byte>> watch = owner;
  auto source = *borrowed(*owner, DType::kF32, {2}, "w", owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(*collect(*source), std::vector<std::byte>(8, std::byte{7}));
  source.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(SourceTest, empty_and_scalar_tensors_stream) {
  auto scalar = *literal(std::vector<std::byte>(4, std::byte{1}), DType::kF32, {});
  EXPECT_EQ(collect(**reshaped(*stacked({scalar, scalar}, 0), {2, 1}))->size(), 8u);
  auto empty = *literal({}, DType::kF32, {0, 5});
  EXPECT_TRUE(collect(**transposed(*converted(empty, DType::kF16), {1, 0}))->empty());
  EXPECT_TRUE(collect(**reshaped(empty, {7, 0}))->empty());
}

// ---- Packed elements of less than a byte ----

TEST(SourceTest, packed_elements_move_as_whole_bytes) {
  std::vector<std::byte> bytes(2 * 3 * 4 / 2);  // i4[2, 3, 4]
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0x10 * (i + 1) + i);
  auto packed = *literal(bytes, DType::kI4, {2, 3, 4});
  EXPECT_EQ(packed->bytes(), 12);
  auto at = [&](std::initializer_list<int> order) {
    std::vector<std::byte> result;
    for (int i : order) result.push_back(bytes[static_cast<size_t>(i)]);
    return result;
  };
  EXPECT_EQ(*collect(**transposed(packed, {1, 0, 2}), 64), at({0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
  EXPECT_EQ(*collect(**sliced(packed, 2, 2, 2), 64), at({1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(*collect(**reshaped(packed, {4, 6}), 16), bytes);
  EXPECT_EQ(*collect(**concatenated({*sliced(packed, 2, 2, 2), *sliced(packed, 2, 0, 2)}, 2), 64),
            at({1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10}));
  EXPECT_EQ(*collect(*packed, 2, 6, 16), at({1, 2, 3}));
  EXPECT_THROW((void)collect(*packed, 1, 2, 64), InternalError);
}

TEST(SourceTest, rejects_packed_elements_that_share_bytes) {
  EXPECT_EQ(rejected(literal(std::vector<std::byte>(5), DType::kU4, {2, 5})).code, ErrorCode::kUnsupportedFeature);
  EXPECT_EQ(rejected(shape_only(DType::kF6E2M3, {4, 2}, "w")).code, ErrorCode::kUnsupportedFeature);
  EXPECT_EQ(rejected(shape_only(DType::kU4, {}, "w")).code, ErrorCode::kUnsupportedFeature);
  auto packed = *shape_only(DType::kU4, {4, 6}, "w");
  EXPECT_NE(rejected(transposed(packed, {1, 0})).message.find("share bytes"), std::string::npos);
  EXPECT_NE(rejected(sliced(packed, 1, 1, 2)).message.find("not whole bytes"), std::string::npos);
  EXPECT_NE(rejected(sliced(packed, 1, 0, 3)).message.find("not whole bytes"), std::string::npos);
  EXPECT_NE(rejected(reshaped(packed, {8, 3})).message.find("whole number of bytes"), std::string::npos);
  EXPECT_NE(rejected(stacked({packed, packed}, 2)).message.find("share bytes"), std::string::npos);
  EXPECT_EQ(rejected(converted(packed, DType::kF32)).code, ErrorCode::kUnsupportedFeature);
}

// ---- Rules of construction ----

TEST(SourceTest, rejects_bytes_that_do_not_match_the_shape) {
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(rejected(borrowed(bytes, DType::kF32, {3}, "w")).message, "memory of 10 bytes for f32[3], which takes 12");
  EXPECT_EQ(rejected(literal(bytes, DType::kF32, {2})).message, "literal of 10 bytes for f32[2], which takes 8");
}

TEST(SourceTest, rejects_shapes_that_make_no_sense) {
  EXPECT_EQ(rejected(shape_only(DType::kF32, {2, -1}, "w")).message, "negative dim in f32[2, -1]");
  EXPECT_NE(rejected(shape_only(DType::kU8, {kHuge, 2}, "w")).message.find("overflows"), std::string::npos);
  EXPECT_NE(rejected(shape_only(DType::kF32, {kHuge / 8}, "w")).message.find("overflows"), std::string::npos);
  EXPECT_NE(rejected(shape_only(DType::kU8, {0, kHuge, kHuge}, "w")).message.find("overflows"), std::string::npos);
  EXPECT_EQ(rejected(shape_only(DType::kU8, std::vector<int64_t>(65, 1), "w")).message,
            "a tensor of 65 dims, 64 is the most");
}

TEST(SourceTest, rejects_reading_a_shape_without_contents) {
  auto bytes = collect(**transposed(*shape_only(DType::kF32, {2, 3}, "model.w"), {1, 0}));
  EXPECT_EQ(rejected(bytes).code, ErrorCode::kNotFound);
  EXPECT_NE(rejected(bytes).message.find("model.w"), std::string::npos);
}

TEST(SourceTest, rejects_casts_that_could_lose_integers) {
  EXPECT_EQ(rejected(converted(named("a", DType::kF32, {2}), DType::kI32)).message, "cannot cast f32[2] to i32");
  EXPECT_EQ(rejected(converted(named("a", DType::kI64, {2}), DType::kI32)).message, "cannot cast i64[2] to i32");
  EXPECT_NE(rejected(converted(*shape_only(DType::kU8, {kHuge / 8}, "w"), DType::kF64)).message.find("overflows"),
            std::string::npos);
}

TEST(SourceTest, rejects_what_is_not_a_permutation) {
  auto a = named("a", DType::kF32, {2, 3});
  for (const std::vector<int>& permutation : {std::vector<int>{0}, {0, 0}, {1, 2}, {-1, 0}, {0, 1, 2}, {}}) {
    EXPECT_NE(rejected(transposed(a, permutation)).message.find("is not a permutation of 2 dims"), std::string::npos);
  }
}

TEST(SourceTest, rejects_concatenations_that_do_not_fit) {
  auto a = named("a", DType::kF32, {2, 3});
  EXPECT_EQ(rejected(concatenated({}, 0)).message, "cannot concatenate without a tensor");
  EXPECT_EQ(rejected(concatenated({a, a}, 2)).message, "concatenation along dim 2 of 2 dims");
  EXPECT_EQ(rejected(concatenated({a, a}, -1)).message, "concatenation along dim -1 of 2 dims");
  EXPECT_EQ(rejected(concatenated({a, named("b", DType::kF16, {2, 3})}, 0)).message,
            "cannot concatenate f32 and f16 (tensors 0 and 1)");
  EXPECT_EQ(rejected(concatenated({a, a, named("b", DType::kF32, {2, 4})}, 0)).message,
            "cannot concatenate [4, 3] and [2, 4] (tensors 0 and 2) along dim 0");
  EXPECT_FALSE(concatenated({a, named("b", DType::kF32, {2, 3, 1})}, 0).has_value());
  auto huge = *shape_only(DType::kU8, {kHuge / 8, 1}, "w");
  std::vector<TensorSourcePtr> many(9, huge);
  EXPECT_NE(rejected(concatenated(many, 0)).message.find("overflows"), std::string::npos);
  auto endless = *shape_only(DType::kU8, {kHuge, 0}, "w");
  EXPECT_NE(rejected(concatenated({endless, endless}, 0)).message.find("overflow"), std::string::npos);
}

TEST(SourceTest, rejects_stacks_that_do_not_fit) {
  auto a = named("a", DType::kF32, {2, 3});
  EXPECT_EQ(rejected(stacked({}, 0)).message, "cannot stack without a tensor");
  EXPECT_EQ(rejected(stacked({a, a}, 3)).message, "stack along dim 3 of 3 dims");
  EXPECT_EQ(rejected(stacked({a, a}, -1)).message, "stack along dim -1 of 3 dims");
  EXPECT_EQ(rejected(stacked({a, named("b", DType::kI32, {2, 3})}, 0)).message,
            "cannot stack f32 and i32 (tensors 0 and 1)");
  EXPECT_EQ(rejected(stacked({a, named("b", DType::kF32, {3, 2})}, 0)).message,
            "cannot stack [2, 3] and [3, 2] (tensors 0 and 1)");
  auto huge = *shape_only(DType::kU8, {kHuge / 8}, "w");
  EXPECT_NE(rejected(stacked({huge, huge}, 0)).message.find("overflows"), std::string::npos);
  auto wide = *shape_only(DType::kU8, std::vector<int64_t>(64, 1), "w");
  EXPECT_EQ(rejected(stacked({wide, wide}, 0)).message, "a tensor of 65 dims, 64 is the most");
}

TEST(SourceTest, rejects_slices_outside_of_the_tensor) {
  auto a = named("a", DType::kF32, {2, 3});
  EXPECT_EQ(rejected(sliced(a, 2, 0, 1)).message, "slice along dim 2 of 2 dims");
  EXPECT_EQ(rejected(sliced(a, 1, 2, 2)).message, "slice of 2 from 2 along dim 1 of [2, 3]");
  EXPECT_FALSE(sliced(a, 1, -1, 2).has_value());
  EXPECT_FALSE(sliced(a, 1, 4, 0).has_value());
  EXPECT_FALSE(sliced(a, 1, 0, -1).has_value());
  EXPECT_FALSE(sliced(a, 1, 1, kHuge).has_value());
  EXPECT_EQ(rejected(sliced(named("s", DType::kF32, {}), 0, 0, 0)).hint, "a scalar has no dims");
}

TEST(SourceTest, rejects_reshapes_to_another_size) {
  auto a = named("a", DType::kF32, {2, 3});
  EXPECT_EQ(rejected(reshaped(a, {5})).message, "cannot reshape [2, 3] to [5]");
  EXPECT_FALSE(reshaped(a, {-1}).has_value());
  EXPECT_FALSE(reshaped(a, {0, 6}).has_value());
  EXPECT_NE(rejected(reshaped(a, {kHuge, kHuge})).message.find("overflows"), std::string::npos);
}

TEST(SourceTest, rejects_recipes_that_are_too_deep_or_too_large) {
  auto deep = named("a", DType::kF32, {2, 2});
  Result<TensorSourcePtr> next = deep;
  int steps = 0;
  for (; next && steps < 1000; ++steps) {
    deep = *next;
    next = steps % 2 == 0 ? transposed(deep, {1, 0}) : concatenated({deep, named("b", DType::kF32, {1, 2})}, 0);
    if (next && steps % 2 == 1) next = sliced(*next, 0, 1, 2);
  }
  EXPECT_LT(steps, 100);
  EXPECT_NE(rejected(next).message.find("nested steps, 64 is the most"), std::string::npos);
  EXPECT_EQ(deep->depth(), 64);
  TensorSourcePtr wide = *literal({}, DType::kF32, {1, 0});
  for (steps = 0; steps < 60; ++steps) {
    next = stacked({wide, wide}, 0);
    if (!next) break;
    wide = *reshaped(*next, {2, 0});
  }
  EXPECT_NE(rejected(next).message.find("parts, 1048576 is the most"), std::string::npos);
}

TEST(SourceTest, rejects_a_scratch_that_is_too_small) {
  auto recipe = *converted(named("a", DType::kF32, {10, 10}), DType::kF16);
  auto bytes = collect(*recipe, 31);
  EXPECT_EQ(rejected(bytes).message, "a scratch of 31 bytes is too small to stream \"cast(a, f16)\"");
  EXPECT_EQ(rejected(bytes).hint, "give at least 32 bytes of scratch");
  EXPECT_TRUE(collect(*recipe, 32).has_value());
}

TEST(SourceTest, rejects_boxes_outside_and_too_much_scratch_as_bugs) {
  auto a = named("a", DType::kU8, {2, 3});
  std::vector<std::byte> out(4);
  Scratch scratch({});
  EXPECT_THROW((void)a->read({{1, 0}, {2, 2}}, out, scratch), InternalError);
  EXPECT_THROW((void)a->read({{0}, {4}}, out, scratch), InternalError);
  EXPECT_THROW((void)a->read({{0, 0}, {2, 3}}, out, scratch), InternalError);
  EXPECT_THROW((void)scratch.take(1), InternalError);
  EXPECT_THROW((void)collect(*a, 4, 3, 64), InternalError);
}

// ---- Parts ----

TEST(PermuteTest, moves_elements_of_any_size) {
  for (DType dtype : {DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kC128}) {
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{270, 70}, {64, 64}, {3, 67, 2}, {2, 19, 3, 18}, {5, 1, 33, 4}}) {
      PlainTensor in = counting_tensor(dtype, shape);
      std::vector<int> permutation(shape.size());
      std::iota(permutation.begin(), permutation.end(), 0);
      do {
        std::vector<std::byte> out(in.bytes.size());
        permute_dims(in.bytes, shape, permutation, static_cast<int64_t>(in.element_size()), out);
        ASSERT_EQ(out, plain_transpose(in, permutation).bytes);
      } while (std::ranges::next_permutation(permutation).found);
    }
  }
}

TEST(Sha256Test, gives_the_standards_examples) {
  auto hash = [](std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, parts_of_any_size_give_the_same) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 23);
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  std::string whole = sha256_hex(bytes);
  for (size_t step : {size_t{1}, size_t{7}, size_t{63}, size_t{64}, size_t{65}, size_t{128}, size_t{999}}) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += step) hash.add(bytes.subspan(at, std::min(step, bytes.size() - at)));
    EXPECT_EQ(hash.hex(), whole) << step;
  }
}

// ---- Comparison ----

TEST(SourceTest, bytes_are_compared_to_the_end_and_no_further_than_the_first_difference) {
  std::vector<std::byte> bytes(3 << 20), other = bytes;
  auto compare = [&] {
    return *have_equal_bytes(**borrowed(bytes, DType::kF16, {3 << 19}, "a"),
                             **borrowed(other, DType::kF16, {3 << 19}, "b"), 1 << 16);
  };
  EXPECT_TRUE(compare());
  other.back() = std::byte{1};
  EXPECT_FALSE(compare());
  other.back() = std::byte{0};
  other[5] = std::byte{1};
  EXPECT_FALSE(compare());
}

TEST(SourceTest, equal_recipes_are_not_read_for_a_comparison) {
  auto a = *shape_only(DType::kF32, {4}, "w"), b = *shape_only(DType::kF32, {4}, "w"),
       c = *shape_only(DType::kF32, {4}, "v");
  EXPECT_EQ(*have_equal_bytes(*a, *b, 1 << 16), true);
  EXPECT_EQ(have_equal_bytes(*a, *c, 1 << 16).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace argosy
