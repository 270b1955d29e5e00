#include <gtest/gtest.h>

#include "engines/device.h"

namespace argosy::engines {
namespace {

constexpr RuntimeOp kAll[] = {
    RuntimeOp::kFusedMatMul,     RuntimeOp::kGroupQueryAttention,          RuntimeOp::kLinearAttention,
    RuntimeOp::kRotaryEmbedding, RuntimeOp::kSimplifiedLayerNormalization, RuntimeOp::kSkipSimplifiedLayerNormalization,
};

TEST(Devices, are_found_by_name) {
  for (const Device& device : all_devices()) EXPECT_EQ(find_device(device.name), &device);
  EXPECT_EQ(find_device("vulkan"), nullptr);
  EXPECT_EQ(device_names(), "cpu, webgpu, cuda, dml");
  ASSERT_NE(find_device(kUsualDevice), nullptr);
}

TEST(Devices, take_no_op_with_types_that_they_lack) {
  for (const Device& device : all_devices()) {
    for (RuntimeOp op : kAll) {
      bool has_bfloat16 = device.ops.takes(op, DType::kBF16);
      EXPECT_TRUE(device.takes_bfloat16 || !has_bfloat16) << device.name;
    }
  }
}

TEST(Devices, say_what_they_rest_on_where_no_check_runs) {
  for (const Device& device : all_devices()) {
    bool is_usual = device.name == kUsualDevice;
    EXPECT_EQ(device.evidence.empty(), is_usual) << device.name;
    EXPECT_EQ(device.provider.empty(), is_usual) << device.name;
  }
}

TEST(Devices, settings_of_attention_are_of_those_that_have_it) {
  for (const Device& device : all_devices()) {
    if (device.ops.has(RuntimeOp::kGroupQueryAttention)) continue;
    EXPECT_FALSE(device.turns_in_attention || device.packs_attention || device.shares_caches) << device.name;
  }
}

}  // namespace
}  // namespace argosy::engines
