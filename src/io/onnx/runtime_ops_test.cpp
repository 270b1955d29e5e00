#include "io/onnx/runtime_ops.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(RuntimeOps, are_taken_with_the_types_that_were_given) {
  constexpr RuntimeOps kOps = RuntimeOps()
                                  .with(RuntimeOp::kFusedMatMul, {DType::kF32})
                                  .with(RuntimeOp::kGroupQueryAttention, {DType::kF16, DType::kBF16});
  EXPECT_TRUE(kOps.takes(RuntimeOp::kFusedMatMul, DType::kF32));
  EXPECT_FALSE(kOps.takes(RuntimeOp::kFusedMatMul, DType::kF16));
  EXPECT_FALSE(kOps.takes(RuntimeOp::kGroupQueryAttention, DType::kF32));
  EXPECT_TRUE(kOps.takes(RuntimeOp::kGroupQueryAttention, DType::kBF16));
  EXPECT_FALSE(kOps.takes(RuntimeOp::kGroupQueryAttention, DType::kI64));
  EXPECT_TRUE(kOps.has(RuntimeOp::kGroupQueryAttention));
  EXPECT_FALSE(kOps.has(RuntimeOp::kLinearAttention));
  EXPECT_FALSE(kOps.is_empty());
  EXPECT_TRUE(RuntimeOps().is_empty());
}

TEST(RuntimeOps, come_back_from_their_bits) {
  constexpr RuntimeOps kOps = RuntimeOps().with(RuntimeOp::kSkipSimplifiedLayerNormalization, {DType::kF64});
  RuntimeOps again(kOps.bits());
  EXPECT_TRUE(again.takes(RuntimeOp::kSkipSimplifiedLayerNormalization, DType::kF64));
  EXPECT_FALSE(again.has(RuntimeOp::kSimplifiedLayerNormalization));
}

}  // namespace
}  // namespace argosy
