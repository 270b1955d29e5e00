#include "backends/executorch/memory_plan.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "backends/executorch/pack.h"

namespace argosy::executorch {
namespace {

Tensor planned(int32_t bytes) { return {.dtype = DType::kU8, .sizes = {bytes}}; }

/// A method of calls, each given as the values it touches.
Method method_of(std::vector<Value> values, std::vector<std::vector<ValueIndex>> calls, std::vector<ValueIndex> inputs,
                 std::vector<ValueIndex> outputs) {
  Method method{
      .name = "forward", .values = std::move(values), .inputs = std::move(inputs), .outputs = std::move(outputs)};
  for (auto& call : calls) method.instructions.push_back(KernelCall{0, std::move(call)});
  return method;
}

bool overlap(const Tensor& a, const Tensor& b) {
  return a.arena == b.arena && a.offset < b.offset + tensor_bytes(b) && b.offset < a.offset + tensor_bytes(a);
}

TEST(MemoryPlan, a_chain_needs_two_ranges) {
  std::vector<Value> values(6, planned(100));
  Method method = method_of(values, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}, {0}, {5});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_EQ(method.arenas, std::vector<uint64_t>{224});
}

TEST(MemoryPlan, inputs_give_their_bytes_back_and_outputs_keep_them) {
  std::vector<Value> values{planned(64), planned(64), planned(64), planned(64)};
  // 0 is read first, 1 is an output that is computed early.
  Method method = method_of(values, {{0, 1}, {1, 2}, {2, 3}}, {0}, {1, 3});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_EQ(method.arenas, std::vector<uint64_t>{192});
  EXPECT_FALSE(overlap(method.tensor(1), method.tensor(2)));
  EXPECT_FALSE(overlap(method.tensor(1), method.tensor(3)));
}

TEST(MemoryPlan, states_have_an_arena_of_their_own_and_share_nothing) {
  Tensor state = planned(20);
  state.storage = Storage::kState;
  Tensor constant = planned(1 << 20);
  constant.storage = Storage::kConstant;
  Method method = method_of({planned(8), state, state, constant}, {{0, 1, 3}, {2, 3}}, {0}, {});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_EQ(method.arenas, (std::vector<uint64_t>{16, 64}));
  EXPECT_EQ(method.tensor(1).arena, 2U);
  EXPECT_EQ(method.tensor(2).offset, 32U);
  EXPECT_EQ(method.tensor(3).arena, 0U);
}

TEST(MemoryPlan, an_alias_keeps_what_it_aliases_alive) {
  Tensor alias = planned(64);
  alias.alias_of = 0;
  Tensor second = planned(64);
  second.alias_of = 1;
  Method method = method_of({planned(64), alias, second, planned(64), planned(64)}, {{0}, {3}, {4, 2}}, {}, {4});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_EQ(method.tensor(2).offset, method.tensor(0).offset);
  EXPECT_FALSE(overlap(method.tensor(2), method.tensor(3)));
  EXPECT_FALSE(overlap(method.tensor(2), method.tensor(4)));
}

TEST(MemoryPlan, tensors_in_lists_are_alive_where_the_list_is_used) {
  Method method = method_of({planned(16), planned(16), TensorValues{{0, 1}}, planned(32)}, {{0}, {1}, {2, 3}}, {}, {3});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_FALSE(overlap(method.tensor(0), method.tensor(1)));
  EXPECT_FALSE(overlap(method.tensor(0), method.tensor(3)));
}

TEST(MemoryPlan, what_a_loop_reads_survives_it) {
  std::vector<Value> values(5, planned(16));
  values.push_back(false);
  // 0 is read at the beginning of the loop [1, 3], again in the next round.
  Method method = method_of(values, {{0}, {0, 1}, {1, 2}}, {}, {});
  method.instructions.push_back(JumpIfFalse{5, 1});
  method.instructions.push_back(KernelCall{0, {3}});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_FALSE(overlap(method.tensor(0), method.tensor(2)));
  EXPECT_EQ(lifetimes(method)[0].last, 3U);
}

TEST(MemoryPlan, what_was_moved_lives_as_long_as_the_value_it_was_moved_to) {
  Method method = method_of({planned(16), planned(16), planned(16), planned(16)}, {{0}}, {}, {3});
  method.instructions.push_back(Move{0, 1});
  method.instructions.push_back(KernelCall{0, {2}});
  method.instructions.push_back(KernelCall{0, {1, 3}});
  ASSERT_TRUE(plan_memory(method));
  EXPECT_FALSE(overlap(method.tensor(0), method.tensor(2)));
  EXPECT_FALSE(overlap(method.tensor(0), method.tensor(3)));
}

TEST(MemoryPlan, a_method_without_tensors_has_no_arena) {
  Method method{.name = "get_max_seq_len", .values = {int64_t{128}}, .outputs = {0}};
  ASSERT_TRUE(plan_memory(method));
  EXPECT_TRUE(method.arenas.empty());
}

TEST(MemoryPlan, rejects_what_no_machine_holds) {
  Tensor huge{.dtype = DType::kF32, .sizes = {1 << 30, 1 << 30, 1 << 30, 1 << 30}};
  Method method = method_of({huge}, {{0}}, {0}, {});
  EXPECT_FALSE(plan_memory(method));
}

/// Random chains with branches, aliases and lists; one of `far_read` reads may reach far back.
Method random_method(std::mt19937& random, size_t calls, size_t far_read = 10) {
  auto pick = [&](size_t below) { return static_cast<size_t>(random() % below); };
  Method method{.name = "forward", .values = {planned(64), planned(4)}, .inputs = {0, 1}};
  for (size_t i = 0; i < calls; ++i) {
    KernelCall call;
    size_t count = method.values.size();
    for (size_t k = 0; k < 1 + pick(3); ++k) {
      size_t reach = pick(far_read) == 0 ? count : std::min<size_t>(count, 6);
      auto index = static_cast<ValueIndex>(count - 1 - pick(reach));
      if (std::holds_alternative<Tensor>(method.values[static_cast<size_t>(index)])) call.arguments.push_back(index);
    }
    Tensor result = planned(static_cast<int32_t>(pick(5) == 0 ? pick(100000) : 64 * pick(20)));
    if (pick(8) == 0 && !call.arguments.empty()) {
      result.alias_of = call.arguments[0];
      result.sizes = method.tensor(call.arguments[0]).sizes;
    }
    call.arguments.push_back(static_cast<ValueIndex>(method.values.size()));
    method.values.push_back(result);
    if (pick(20) == 0) method.values.push_back(TensorValues{{call.arguments.back()}});
    method.instructions.push_back(std::move(call));
  }
  for (size_t i = 0; i < method.values.size(); ++i) {
    if (std::holds_alternative<Tensor>(method.values[i]) && pick(50) == 0) {
      method.outputs.push_back(static_cast<ValueIndex>(i));
    }
  }
  return method;
}

TEST(MemoryPlan, no_two_tensors_that_live_at_once_overlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Method method = random_method(random, 80);
    ASSERT_TRUE(plan_memory(method));
    std::vector<Lifetime> all = lifetimes(method);
    ASSERT_GT(all.size(), 40U);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].offset % 16, 0U);
      EXPECT_LE(all[i].offset + all[i].size, method.arenas[0]);
      for (size_t k = 0; k < i; ++k) {
        bool together = all[i].first <= all[k].last && all[k].first <= all[i].last;
        EXPECT_FALSE(together && overlap(method.tensor(all[i].value), method.tensor(all[k].value)));
      }
    }
  }
}

TEST(MemoryPlan, plans_are_near_the_least_there_can_be) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    Method method = random_method(random, 200);
    ASSERT_TRUE(plan_memory(method));
    std::vector<TimedBlock> blocks;
    for (const Lifetime& each : lifetimes(method)) blocks.push_back({each.size, each.first, each.last});
    uint64_t least = peak_bytes(blocks, 16);
    EXPECT_LE(least, method.arenas[0]);
    EXPECT_LE(static_cast<double>(method.arenas[0]), 1.1 * static_cast<double>(least));
  }
}

TEST(MemoryPlan, large_methods_are_planned_at_once) {
  std::mt19937 random(3);
  Method method = random_method(random, 5000, 200);
  std::clock_t start = std::clock();  // of the processor: machines are busy
  ASSERT_TRUE(plan_memory(method));
  double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10);  // far above what it takes, also under a sanitizer
}

}  // namespace
}  // namespace argosy::executorch
