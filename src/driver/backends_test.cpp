#include "driver/backends.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy {
namespace {

TEST(Backends, are_found_by_name) {
  for (const Backend& backend : all_backends()) EXPECT_EQ(find_backend(backend.name), &backend);
  EXPECT_EQ(find_backend("none"), nullptr);
}

TEST(Backends, options_that_change_graphs_have_texts_of_their_own) {
  const Backend& onnx = *find_backend("onnx");
  BackendOptions usual, other_opset, unoptimised, linked;
  other_opset.onnx.lowering.opset = 18;
  unoptimised.onnx.lowering.optimize = false;
  linked.onnx.weights = onnx::WeightsMode::kLink;
  EXPECT_NE(onnx.graph_arguments(usual), onnx.graph_arguments(other_opset));
  EXPECT_NE(onnx.graph_arguments(usual), onnx.graph_arguments(unoptimised));
  EXPECT_EQ(onnx.graph_arguments(usual), onnx.graph_arguments(linked));
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
