#include "backends/pt2/lowering.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace argosy {
namespace {

Result<bool> lower(std::string_view text) {
  Result<Program> program = parse(text);
  EXPECT_TRUE(program) << to_text(program.error());
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  return pt2_pipeline().run(*program, context);
}

TEST(Pt2LoweringTest, takes_what_torch_has) {
  EXPECT_TRUE(lower(R"(
schema aten::silu(Tensor self) -> Tensor
schema prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor
graph (%x: f32[2, 3]) {
  %y: f32[2, 3] = aten.silu.default(self=%x)
  %z: f16[2, 3] = prims.convert_element_type.default(a=%y, dtype=dtype:f16)
  return %z
}
)"));
}

TEST(Pt2LoweringTest, rejects_an_op_of_another_package) {
  Error error = lower(R"(
schema mine::twist(Tensor self) -> Tensor
graph (%x: f32[2, 3]) {
  %y: f32[2, 3] = mine.twist.default(self=%x) loc("layers.0", "Layer", "model.py":7)
  return %y
}
)")
                    .error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupportedOp);
  EXPECT_EQ(to_text(error),
            "error[unsupported-op]: op mine.twist.default is not part of PyTorch, so a standalone program cannot call "
            "it\n"
            "  in node %y = mine.twist.default(…)\n"
            "  from layers.0 (Layer), model.py:7\n"
            "  in component model\n"
            "  in pass refuse-foreign-ops\n"
            "  hint: say what it consists of with argosy.register_decomposition; see docs/how-to/extend.md\n");
}

}  // namespace
}  // namespace argosy
