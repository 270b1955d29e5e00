#include "io/onnx/own_op.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace argosy {
namespace {

TEST(OwnOp, is_read_as_it_was_written) {
  OwnOp op{"com.example-1.x", "Gate_2", 7};
  EXPECT_EQ(to_text(op), "com.example-1.x.Gate_2 7");
  auto found = parse_own_op(to_text(op));
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->domain, op.domain);
  EXPECT_EQ(found->name, op.name);
  EXPECT_EQ(found->version, 7);
}

TEST(OwnOp, rejects_what_no_file_can_have) {
  for (const char* text : {"", "com.example.Gate", "Gate 1", ".Gate 1", "com. 1", "com.example.Gate x", "com.a.Gate 0",
                           "com.a.Gate -1", "com.a.Gate 4294967296", "com.a.Gate 1 ", "ai.onnx.Gate 1",
                           "ai.onnx.ml.Gate 1", "1com.Gate 1", "com.a.1Gate 1", "com a.Gate 1"})
    EXPECT_FALSE(parse_own_op(text)) << text;
  EXPECT_FALSE(parse_own_op(std::string(201, 'a') + ".Gate 1"));
}

}  // namespace
}  // namespace argosy
