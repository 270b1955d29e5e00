#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(DTypeTest, texts_read_back) {
#define ARGOSY_X(name, text, safetensors, bits, kind)                              \
  EXPECT_EQ(dtype_from_text(to_text(DType::name)), DType::name);                   \
  if (!safetensors_name(DType::name).empty()) {                                    \
    EXPECT_EQ(dtype_from_safetensors(safetensors_name(DType::name)), DType::name); \
  }
  ARGOSY_DTYPES(ARGOSY_X)
#undef ARGOSY_X
  EXPECT_EQ(dtype_from_text("f99"), std::nullopt);
  EXPECT_EQ(dtype_from_safetensors(""), std::nullopt);
}

TEST(DTypeTest, packed_bytes_of_small_types) {
  EXPECT_EQ(packed_bytes(DType::kU4, 6), 3);
  EXPECT_EQ(packed_bytes(DType::kU4, 5), std::nullopt);
  EXPECT_EQ(packed_bytes(DType::kC128, 2), 32);
  EXPECT_EQ(packed_bytes(DType::kF64, INT64_MAX / 32), std::nullopt);
  EXPECT_EQ(packed_bytes(DType::kF32, -1), std::nullopt);
}

TEST(DTypeTest, promotes_as_torch_does) {
  EXPECT_EQ(promote(DType::kF16, DType::kBF16), DType::kF32);
  EXPECT_EQ(promote(DType::kU8, DType::kI8), DType::kI16);
  EXPECT_EQ(promote(DType::kU8, DType::kI32), DType::kI32);
  EXPECT_EQ(promote(DType::kBool, DType::kU8), DType::kU8);
  EXPECT_EQ(promote(DType::kI64, DType::kF16), DType::kF16);
  EXPECT_EQ(promote(DType::kF64, DType::kC64), DType::kC128);
  EXPECT_EQ(promote(DType::kI64, DType::kC64), DType::kC64);
  EXPECT_EQ(promote(DType::kF32, DType::kC32), DType::kC64);
  EXPECT_EQ(promote(DType::kU32, DType::kI64), std::nullopt);
  EXPECT_EQ(promote(DType::kU32, DType::kU32), DType::kU32);
}

}  // namespace
}  // namespace argosy
