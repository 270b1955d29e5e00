#include "engines/executorch/usage.h"

#include <gtest/gtest.h>

namespace argosy::engines {
namespace {

ProgramFacts runner_program() {
  ProgramFacts facts;
  facts.has_tokenizer = true;
  facts.methods = {{"forward", {{"input_ids", DType::kI64, {1, 128}}, {"cache_position", DType::kI64, {128}}}}};
  facts.kernels = {"aten::add", "llama::update_cache"};
  return facts;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(ExecutorchUsage, imports_the_kernels_that_the_program_calls) {
  std::string usage = executorch_usage(runner_program());
  EXPECT_TRUE(contains(usage, R"(TextLLMRunner("model.pte", "tokenizer.json"))")) << usage;
  EXPECT_TRUE(contains(usage, "import executorch.extension.llm.custom_ops.custom_ops")) << usage;
  EXPECT_FALSE(contains(usage, "executorch.kernels.quantized")) << usage;
  ProgramFacts facts = runner_program();
  facts.kernels.emplace_back("quantized_decomposed::embedding_byte");
  EXPECT_TRUE(contains(executorch_usage(facts), "import executorch.kernels.quantized"));
}

TEST(ExecutorchUsage, names_the_data_file_where_there_is_one) {
  ProgramFacts facts = runner_program();
  facts.has_data_file = true;
  EXPECT_TRUE(contains(executorch_usage(facts), R"("tokenizer.json", "model.ptd")"));
  facts.has_tokenizer = false;  // nothing for the runner, which reads texts
  EXPECT_TRUE(contains(executorch_usage(facts), R"(load_program("model.pte", data_path="model.ptd"))"));
}

TEST(ExecutorchUsage, writes_neighbours_that_are_alike_once) {
  ProgramFacts facts;
  facts.methods = {{"decode",
                    {{"input_ids", DType::kI64, {4, 256}},
                     {"past_0_key", DType::kF32, {4, 2, 256, 32}},
                     {"past_0_value", DType::kF32, {4, 2, 256, 32}}}}};
  std::string usage = executorch_usage(facts);
  EXPECT_TRUE(contains(usage, "torch.ones([4, 256], dtype=torch.int64),  # input_ids\n")) << usage;
  EXPECT_TRUE(
      contains(usage, "*[torch.zeros([4, 2, 256, 32], dtype=torch.float32)] * 2,  # past_0_key to past_0_value\n"))
      << usage;
  EXPECT_TRUE(contains(usage, R"(load_method("decode"))")) << usage;
}

}  // namespace
}  // namespace argosy::engines
