#include "driver/backends.h"

#include <gtest/gtest.h>

#include "backends/onnx/quantize.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

TEST(Backends, are_found_by_name) {
  for (const Backend& backend : all_backends()) EXPECT_EQ(find_backend(backend.name), &backend);
  EXPECT_EQ(find_backend("none"), nullptr);
}

TEST(Backends, options_that_change_graphs_have_texts_of_their_own) {
  const Backend& onnx = *find_backend("onnx");
  BackendOptions usual, other_opset, unoptimised, linked, embedded;
  other_opset.onnx.lowering.opset = 18;
  unoptimised.onnx.lowering.optimize = onnx::Optimize::kOff;
  linked.onnx.weights = onnx::WeightsMode::kLink;
  EXPECT_NE(onnx.graph_arguments(usual), onnx.graph_arguments(other_opset));
  EXPECT_NE(onnx.graph_arguments(usual), onnx.graph_arguments(unoptimised));
  embedded.onnx.weights = onnx::WeightsMode::kEmbed;
  BackendOptions on_device;
  on_device.onnx.device = "webgpu";
  EXPECT_EQ(onnx.graph_arguments(on_device), std::vector<std::string>{"--device=webgpu"});
  BackendOptions quantised;
  onnx::Quantization& how = quantised.onnx.lowering.quantization;
  ASSERT_TRUE(onnx::read_quantization("int4,lm_head=int8,layers.7.mlp=float,embedding=int4", how));
  how.block = 128;
  how.is_symmetric = false;
  how.accuracy_level = 1;
  EXPECT_EQ(onnx.graph_arguments(quantised),
            (std::vector<std::string>{"--quantize=int4,lm_head=int8,layers.7.mlp=float,embedding=int4",
                                      "--quantize-block=128", "--quantize-method=default", "--quantize-zero-points",
                                      "--accuracy-level=1"}));
  BackendOptions normal;
  ASSERT_TRUE(onnx::read_quantization("nf4,lm_head=int8,mlp=float", normal.onnx.lowering.quantization));
  EXPECT_EQ(onnx.graph_arguments(normal),
            (std::vector<std::string>{"--quantize=nf4,lm_head=int8,mlp=float", "--quantize-block=64",
                                      "--quantize-method=default"}));
  EXPECT_NE(onnx.graph_arguments(usual), onnx.graph_arguments(linked));
  EXPECT_NE(onnx.graph_arguments(embedded), onnx.graph_arguments(linked));
}

TEST(Backends, every_option_of_a_program_is_an_argument) {
  const Backend& executorch = *find_backend("executorch");
  BackendOptions given;
  EXPECT_TRUE(executorch.graph_arguments(given).empty());
  ExecutorchOptions& options = given.executorch;
  options.lowering.recipe = executorch::Recipe::kPortable;
  options.lowering.linear = {executorch::LinearEncoding::k8da4w, 64};
  options.lowering.encoder_linear = {executorch::LinearEncoding::k8w, -1};
  options.lowering.embedding = {executorch::EmbeddingEncoding::k4w, 32};
  options.task.task = "text-generation";
  options.task.max_seq_len = 128;
  options.task.custom_sdpa = options.task.custom_kv_cache = options.task.dynamic_shapes = false;
  options.task.all_logits = true;
  options.data = executorch::DataPlace::kBeside;
  options.shape = "sequence=1..64";
  std::vector<std::string> wanted = {"--recipe=portable",
                                     "--task=text-generation",
                                     "--max-seq-len=128",
                                     "--no-custom-sdpa",
                                     "--no-custom-kv-cache",
                                     "--all-logits",
                                     "--disable-dynamic-shapes",
                                     "--qlinear=8da4w",
                                     "--qlinear-group-size=64",
                                     "--qlinear-encoder=8w",
                                     "--qembedding=4w",
                                     "--qembedding-group-size=32",
                                     "--ptd",
                                     "--shape=sequence=1..64"};
  EXPECT_EQ(executorch.graph_arguments(given), wanted);
}

TEST(Backends, bfloat16_becomes_what_the_engine_runs) {
  TestFolder folder;
  const Backend &onnx = *find_backend("onnx"), &pt2 = *find_backend("pt2");
  auto dtype = [&](const Backend& backend, const char* config, const char* asked = "auto") {
    folder.write("config.json", config);
    return export_dtype(backend, folder.path(), asked).value();
  };
  EXPECT_EQ(dtype(onnx, R"({"dtype": "bfloat16"})"), "float32");
  EXPECT_EQ(dtype(onnx, R"({"torch_dtype": "bfloat16", "eps": NaN})"), "float32");
  EXPECT_EQ(dtype(onnx, R"({"text_config": {"dtype": "bfloat16"}})"), "float32");
  EXPECT_EQ(dtype(onnx, R"({"dtype": "float16"})"), "auto");
  EXPECT_EQ(dtype(onnx, "{}"), "auto");
  EXPECT_EQ(dtype(onnx, R"({"dtype": "bfloat16"})", "bfloat16"), "bfloat16");
  EXPECT_EQ(dtype(pt2, R"({"dtype": "bfloat16"})"), "auto");
}

}  // namespace
}  // namespace argosy
