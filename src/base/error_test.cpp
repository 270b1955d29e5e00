#include "base/error.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/result.h"

namespace argosy {
namespace {

TEST(ErrorTest, shows_what_where_and_what_to_do) {
  Error error(ErrorCode::kUnsupportedOp, "no schema for op foo.bar.default", "recapture the model");
  ModelLocation location{
      .file = "modeling_foo.py", .line = 212, .module_path = "model.layers.3.mlp", .class_name = "FooMLP"};
  error.in("node %41 = foo.bar.default", location).in("component decode");
  EXPECT_EQ(to_text(error),
            "error[unsupported-op]: no schema for op foo.bar.default\n"
            "  in node %41 = foo.bar.default\n"
            "  from model.layers.3.mlp (FooMLP), modeling_foo.py:212\n"
            "  in component decode\n"
            "  hint: recapture the model\n");
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::kInvalidInput, "odd");
  return value / 2;
}

Result<int> quarter(int value) {
  ARGOSY_TRY(int once, half(value));
  ARGOSY_TRY(int twice, half(once));
  return twice;
}

Status check_quarter(int value) {
  ARGOSY_TRY_STATUS(quarter(value));
  return {};
}

TEST(ResultTest, try_passes_values_and_errors_on) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(check_quarter(4));
  EXPECT_EQ(check_quarter(5).error().code, ErrorCode::kInvalidInput);
}

TEST(CheckTest, throws_with_the_detail) {
  try {
    ARGOSY_CHECK(1 + 1 == 3, "arithmetic is off");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("arithmetic is off (1 + 1 == 3 does not hold at error_test.cpp:"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace argosy
