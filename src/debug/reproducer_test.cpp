#include "debug/reproducer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "argosy/version.h"
#include "io/test_folder.h"
#include "ir/text.h"

namespace argosy {
namespace {

constexpr std::string_view kBroken =
    "schema aten::neg(Tensor self) -> Tensor\n"
    "graph (%x: f32[4]) {\n"
    "  %y: f32[4] = aten.neg.default(self=none)\n"
    "  return %y\n"
    "}\n";

class ReproducerTest : public testing::Test {
 protected:
  Status write(std::string_view text, std::vector<std::string> passes) {
    auto program = parse(text);
    EXPECT_TRUE(program) << to_text(program.error());
    return write_reproducer(folder(), *program, passes, true, Error(ErrorCode::kInternal, "it broke"));
  }
  std::filesystem::path folder() const { return root_ / "x.repro"; }
  void overwrite(const char* name, std::string_view text) { std::ofstream(folder() / name) << text; }
  std::string refusal() {
    auto result = read_reproducer(folder());
    return result ? "" : result.error().message;
  }

  TestFolder root_;
};

TEST_F(ReproducerTest, reads_back_what_was_written) {
  ASSERT_TRUE(write(kBroken, {"verify", "compact-ids"}));
  auto read = read_reproducer(folder());
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_EQ(print(read->program), kBroken);
  EXPECT_EQ(read->passes, (std::vector<std::string>{"verify", "compact-ids"}));
  EXPECT_TRUE(read->verify_each);
  EXPECT_EQ(read->version, version());
  EXPECT_EQ(read->error, "error[internal]: it broke\n");
}

TEST_F(ReproducerTest, replaying_fails_as_long_as_the_pass_does) {
  ASSERT_TRUE(write(kBroken, {"verify"}));
  auto broken = read_reproducer(folder());
  ASSERT_TRUE(broken);
  Status status = replay(*broken);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().frames.back().what, "pass verify");
}

TEST_F(ReproducerTest, replaying_verifies_before_passes_that_trust_the_program) {
  ASSERT_TRUE(write(kBroken, {"eliminate-dead-code"}));
  auto broken = read_reproducer(folder());
  ASSERT_TRUE(broken);
  EXPECT_FALSE(replay(*broken));
}

TEST_F(ReproducerTest, replaying_passes_once_the_error_is_gone) {
  ASSERT_TRUE(write("graph (%x: f32[4]) {\n  return %x\n}\n", {"eliminate-dead-code", "verify"}));
  auto fixed = read_reproducer(folder());
  ASSERT_TRUE(fixed);
  EXPECT_TRUE(replay(*fixed));
}

TEST_F(ReproducerTest, an_older_reproducer_is_replaced) {
  ASSERT_TRUE(write(kBroken, {"verify"}));
  ASSERT_TRUE(write(kBroken, {"compact-ids"}));
  EXPECT_EQ(read_reproducer(folder())->passes, std::vector<std::string>{"compact-ids"});
}

TEST_F(ReproducerTest, rejects_to_delete_what_a_user_put_beside_one) {
  ASSERT_TRUE(write(kBroken, {"verify"}));
  overwrite("notes.txt", "x");
  EXPECT_FALSE(write(kBroken, {"compact-ids"}));
  EXPECT_TRUE(std::filesystem::exists(folder() / "notes.txt"));
  EXPECT_EQ(read_reproducer(folder())->passes, std::vector<std::string>{"verify"});
}

TEST_F(ReproducerTest, rejects_to_replace_any_other_folder) {
  std::filesystem::create_directories(folder());
  overwrite("precious", "x");
  Status status = write(kBroken, {"verify"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, folder().string() + " exists and is not a reproducer");
  EXPECT_TRUE(std::filesystem::exists(folder() / "precious"));
}

TEST_F(ReproducerTest, rejects_another_format) {
  ASSERT_TRUE(write(kBroken, {"verify"}));
  overwrite("replay.json", R"({"format": 2})");
  EXPECT_EQ(refusal(), (folder() / "replay.json").string() + ": reproducer format 2 is not 1");
}

TEST_F(ReproducerTest, rejects_fields_of_another_kind) {
  ASSERT_TRUE(write(kBroken, {"verify"}));
  std::string file = (folder() / "replay.json").string();
  overwrite("replay.json", R"({"format": "1"})");
  EXPECT_EQ(refusal(), file + ": \"format\" is not a number");
  overwrite("replay.json", R"({"format": 1, "passes": []})");
  EXPECT_EQ(refusal(), file + ": \"passes\" is not a list of names");
  overwrite("replay.json", R"({"format": 1, "passes": [1]})");
  EXPECT_EQ(refusal(), file + ": \"passes\" is not a list of names");
  overwrite("replay.json", R"({"format": 1, "passes": ["verify"], "options": {}})");
  EXPECT_EQ(refusal(), file + ": \"options.verify_each\" is not a boolean");
}

TEST_F(ReproducerTest, rejects_a_missing_program) {
  ASSERT_TRUE(write(kBroken, {"verify"}));
  std::filesystem::remove(folder() / "program.ir");
  EXPECT_NE(refusal(), "");
}

}  // namespace
}  // namespace argosy
