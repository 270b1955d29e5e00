#include "driver/backend_arguments.h"

#include <gtest/gtest.h>

#include "backends/onnx/quantize.h"

namespace argosy {
namespace {

/// What is written once it was read.
std::vector<std::string> onnx_again(const std::vector<std::string>& arguments) {
  OnnxOptions read;
  Status status = read_onnx_arguments(arguments, read);
  return status ? onnx_arguments(read) : std::vector<std::string>{status.error().message};
}

std::vector<std::string> executorch_again(const std::vector<std::string>& arguments) {
  ExecutorchOptions read;
  Status status = read_executorch_arguments(arguments, read);
  return status ? executorch_arguments(read) : std::vector<std::string>{status.error().message};
}

using Texts = std::vector<std::string>;

TEST(BackendArguments, of_onnx_are_read_as_they_are_written) {
  for (const Texts& each : {Texts{},
                            {"--opset=18", "--optimize=off", "--device=webgpu", "--weights=link", "--mixed16"},
                            {"--optimize=safe", "--weights=embed", "--observe-values"},
                            {"--quantize=int4,lm_head=int8,embedding=int4", "--quantize-block=128",
                             "--quantize-method=k_quant", "--quantize-zero-points", "--accuracy-level=1"},
                            {"--quantize=dynamic-int8"}})
    EXPECT_EQ(onnx_again(each), each);
}

TEST(BackendArguments, of_executorch_are_read_as_they_are_written) {
  for (const Texts& each : {Texts{},
                            {"--recipe=portable", "--task=text-generation", "--max-seq-len=128", "--no-custom-sdpa",
                             "--no-custom-kv-cache", "--all-logits", "--disable-dynamic-shapes", "--qlinear=8da4w",
                             "--qlinear-group-size=64", "--qlinear-encoder=8w", "--qconv=8a8w", "--qembedding=4w",
                             "--qembedding-group-size=32", "--ptd", "--shape=sequence=1..64"}})
    EXPECT_EQ(executorch_again(each), each);
}

TEST(BackendArguments, rejects_names_that_are_none) {
  EXPECT_EQ(onnx_again({"--opsets=18"}), Texts{R"("--opsets" is no option of ONNX exports)"});
  EXPECT_EQ(executorch_again({"--opset=18"}), Texts{R"("--opset" is no option of ExecuTorch exports)"});
}

TEST(BackendArguments, rejects_values_that_are_none) {
  EXPECT_EQ(onnx_again({"--quantize=int5"}), Texts{R"(--quantize does not know "int5")"});
  EXPECT_EQ(onnx_again({"--opset=17"}), Texts{R"(--opset is "17", which is not a number from 18 to 24)"});
  EXPECT_EQ(onnx_again({"--opset=18.0"}), Texts{R"(--opset is "18.0", which is not a number from 18 to 24)"});
  EXPECT_EQ(onnx_again({"--weights=move"}), Texts{R"(--weights is "move", which is not one of copy, embed, link)"});
  EXPECT_EQ(onnx_again({"--mixed16=yes"}), Texts{R"(--mixed16 takes no value, and has "yes")"});
  EXPECT_EQ(executorch_again({"--qembedding=2w"}), Texts{R"(--qembedding is "2w", which is not one of 4w, 8w)"});
}

}  // namespace
}  // namespace argosy
