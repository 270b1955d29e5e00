#include "driver/validate_export.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "io/test_folder.h"
#include "io/zip.h"

namespace argosy {
namespace {

/// A model's folder with one weight [64, 96], and what is asked of it.
class ValidateExport : public testing::Test {
 protected:
  ValidateExport() {
    folder_.write("m/config.json", R"({"max_position_embeddings": 64})");
    std::string header = R"({"w": {"dtype": "F32", "shape": [64, 96], "data_offsets": [0, 24576]}})";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    folder_.write("m/model.safetensors", file + header + std::string(24576, '\0'));
    checkpoint_ = *Checkpoint::open(folder_ / "m");
  }

  ExportRequest request(std::string_view backend) {
    ExportRequest request{find_backend(backend), &options_, &destination_, &checkpoint_, folder_ / "m", "auto"};
    return request;
  }
  Status validate(std::string_view backend) { return validate_export(request(backend), notes_); }
  void refused(std::string_view backend, std::string_view part) {
    expect_error(validate(backend), ErrorCode::kInvalidInput, part);
    options_ = {};
  }

  TestFolder folder_;
  Checkpoint checkpoint_;
  BackendOptions options_;
  ExportDestination destination_{"out", true};
  std::vector<std::string> notes_;
};

TEST_F(ValidateExport, takes_what_is_right) {
  for (const char* backend : {"onnx", "pt2", "executorch"}) {
    Status status = validate(backend);
    EXPECT_TRUE(status) << backend << ": " << status.error().message;
  }
  options_.executorch.task.task = "text-generation";
  options_.executorch.task.max_seq_len = 32;
  options_.executorch.lowering.linear = {executorch::LinearEncoding::k8da4w, 32};
  EXPECT_TRUE(validate("executorch"));
  EXPECT_TRUE(notes_.empty());
  options_.executorch.task.max_seq_len = 128;
  EXPECT_TRUE(validate("executorch"));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("more than the 64 positions"), std::string::npos) << notes_[0];
}

TEST_F(ValidateExport, rejects_shapes_that_are_none) {
  ExportRequest asked = request("onnx");
  asked.shape = "batch:1";
  expect_error(validate_export(asked, notes_), ErrorCode::kInvalidInput, "not a size of a dim");
  asked.shape = "batch=1";
  asked.capture = folder_ / "x.capture";
  auto write_capture = [&](int64_t max) {
    std::string bytes;
    ZipWriter writer([&](std::span<const std::byte> more) -> Status {
      bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
      return {};
    });
    std::string manifest =
        format(R"({{"components": [{{"name": "model", "dims": {{"batch": {{"min": 1, "max": {}}}}}}}]}})", max);
    EXPECT_TRUE(writer.add("capture.json", manifest) && writer.finish());
    folder_.write("x.capture", bytes);
  };
  write_capture(8);
  expect_error(validate_export(asked, notes_), ErrorCode::kInvalidInput, "was made for other sizes of batch");
  write_capture(1);
  EXPECT_TRUE(validate_export(asked, notes_));
  asked.prefill = true;
  expect_error(validate_export(asked, notes_), ErrorCode::kInvalidInput, "no graph for prompts");
  options_.executorch.shape = "batch=x";
  refused("executorch", "not a size of a dim");
}

TEST(MissingFileHint, says_who_makes_the_file) {
  EXPECT_NE(missing_file_hint("tokenizer.json").find("AutoTokenizer.from_pretrained"), std::string::npos);
  EXPECT_NE(missing_file_hint("preprocessor_config.json").find("AutoProcessor.from_pretrained"), std::string::npos);
  EXPECT_EQ(missing_file_hint("vocab.txt"),
            "get vocab.txt from where the model is from; --for plain writes graphs without one");
}

TEST_F(ValidateExport, rejects_a_tokenizer_that_the_engine_would_look_for) {
  options_.onnx.engine = "genai";
  refused("onnx", "has no tokenizer.json");
  folder_.write("m/tokenizer.json", "{}");
  options_.onnx.engine = "genai";
  refused("onnx", "has no tokenizer_config.json");
  folder_.write("elsewhere.json", "{}");
  folder_.write("m/tokenizer_config.json", "{}");
  options_.onnx.engine = "genai";
  EXPECT_TRUE(validate("onnx"));
  std::filesystem::remove(folder_ / "m/tokenizer.json");
  std::filesystem::create_symlink("../elsewhere.json", folder_ / "m/tokenizer.json");
  refused("onnx", "leads out of its folder");
}

TEST_F(ValidateExport, rejects_what_an_engine_does_not_take) {
  options_.onnx.engine = "transformersjs";
  options_.onnx.weights = onnx::WeightsMode::kLink;
  refused("onnx", "data files of its own");
  options_.onnx.engine = "optimum";
  ExportRequest asked = request("onnx");
  asked.dtype = "bfloat16";
  expect_error(validate_export(asked, notes_), ErrorCode::kUnsupportedFeature, "no bfloat16");
  destination_ = {"out.onnx", false};
  refused("onnx", "wants a folder");
}

TEST_F(ValidateExport, rejects_mixed_float16_of_what_is_not_float32) {
  options_.onnx.lowering.half = onnx::HalfMode::kMixed;
  ExportRequest asked = request("onnx");
  asked.dtype = "float32";
  EXPECT_TRUE(validate_export(asked, notes_));
  asked.dtype = "float16";
  expect_error(validate_export(asked, notes_), ErrorCode::kInvalidInput, "is made of float32, not of float16");
  asked.dtype = "float32";
  options_.onnx.lowering.quantization.bits = 4;
  expect_error(validate_export(asked, notes_), ErrorCode::kUnsupportedFeature, "no mixed float16");
}

TEST_F(ValidateExport, rejects_products_in_integers_where_they_were_not_run) {
  options_.onnx.lowering.quantization.bits = 8;
  options_.onnx.lowering.quantization.is_dynamic = true;
  EXPECT_TRUE(validate("onnx"));
  options_.onnx.device = "webgpu";
  expect_error(validate("onnx"), ErrorCode::kUnsupportedFeature, "products in integers were not run on WebGPU");
}

TEST_F(ValidateExport, rejects_nf4_where_no_kernel_has_it) {
  options_.onnx.lowering.quantization.rules = {{"lm_head", onnx::kNf4}};
  EXPECT_TRUE(validate("onnx"));
  options_.onnx.device = "cuda";
  EXPECT_TRUE(validate("onnx"));
  options_.onnx.device = "webgpu";
  expect_error(validate("onnx"), ErrorCode::kUnsupportedFeature, "WebGPU has no product with weights in NF4");
}

TEST_F(ValidateExport, rejects_several_variants_for_one_file) {
  ExportRequest asked = request("onnx");
  asked.variants = 2;
  EXPECT_TRUE(validate_export(asked, notes_));
  destination_ = {"out.onnx", false};
  expect_error(validate_export(asked, notes_), ErrorCode::kInvalidInput,
               R"("out.onnx" is to be one model, but several variants are asked for)");
  asked.variants = 1;
  EXPECT_TRUE(validate_export(asked, notes_));
}

TEST_F(ValidateExport, rejects_devices_that_are_none_and_what_one_does_not_take) {
  options_.onnx.device = "vulkan";
  Status status = validate("onnx");
  expect_error(status, ErrorCode::kInvalidInput, R"(there is no device "vulkan")");
  EXPECT_EQ(status.error().hint, "name one of cpu, webgpu, cuda, dml");
  for (const char* device : {"cpu", "webgpu", "cuda", "dml"}) {
    options_.onnx.device = device;
    EXPECT_TRUE(validate("onnx")) << device;
  }
  ExportRequest asked = request("onnx");
  asked.dtype = "bfloat16";
  options_.onnx.device = "webgpu";
  expect_error(validate_export(asked, notes_), ErrorCode::kUnsupportedFeature, "WebGPU has no bfloat16");
  options_.onnx.device = "cuda";
  EXPECT_TRUE(validate_export(asked, notes_));
}

TEST_F(ValidateExport, rejects_tasks_and_what_belongs_to_none) {
  executorch::TaskOptions& task = options_.executorch.task;
  task.task = "text-generaton";
  refused("executorch", "is not a task");
  task.max_seq_len = 64;
  refused("executorch", "--max-seq-len says something of a task");
  task.all_logits = true;
  refused("executorch", "--all-logits");
  task.task = "image-classification";
  task.max_seq_len = 64;
  refused("executorch", "has no texts");
}

TEST_F(ValidateExport, rejects_groups_that_fit_no_weight) {
  executorch::LoweringOptions& lowering = options_.executorch.lowering;
  lowering.linear = {executorch::LinearEncoding::k8da4w, 48};
  refused("executorch", "--qlinear-group-size 48 fits no layer");
  lowering.linear = {executorch::LinearEncoding::k8da4w, 128};
  Status status = validate("executorch");
  EXPECT_EQ(status.error().hint, "32 fit; 0 is a scale for each row");
  refused("executorch", "--qlinear-group-size 128 fits no weight");
  lowering.linear.group_size = 32;
  refused("executorch", "is of --qlinear, which is not given");
  lowering.embedding = {executorch::EmbeddingEncoding::k8w, 7};
  refused("executorch", "--qembedding-group-size 7 fits no weight");
  lowering.embedding.group_size = 32;
  refused("executorch", "is of --qembedding, which is not given");
  lowering.linear.encoding = executorch::LinearEncoding::k8da4w;
  lowering.recipe = executorch::Recipe::kPortable;
  expect_error(validate("executorch"), ErrorCode::kUnsupportedFeature, "by XNNPACK alone");
}

TEST_F(ValidateExport, rejects_by_components_before_they_are_traced) {
  const std::vector<ComponentDims> model = {{"model", {"batch", "sequence"}}};
  const std::vector<ComponentDims> decoder = {{"decode", {"batch", "past_sequence"}}, {"prefill", {"batch"}}};
  auto refuses = [&](const ExportRequest& asked, const std::vector<ComponentDims>& components, std::string_view part) {
    Status status = validate_components(asked, components);
    ASSERT_FALSE(status) << part;
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  };
  ExportRequest asked = request("onnx");
  asked.shape = "batsh=1";
  refuses(asked, model, "no dim \"batsh\"");
  asked.shape = "batch=1";
  EXPECT_TRUE(validate_components(asked, model));
  options_.onnx.engine = "genai";
  EXPECT_TRUE(validate_components(asked, decoder));
  refuses(asked, model, "consists of model");
  options_.onnx.engine = "plain";
  destination_ = {"out.onnx", false};
  EXPECT_TRUE(validate_components(asked, model));
  refuses(asked, decoder, "is to be one model, but there are 2");
  ExportRequest program = request("executorch");
  options_.executorch.shape = "sequence=1..8";
  refuses(program, decoder, "no dim \"sequence\"");
  options_.executorch.shape = "";
  options_.executorch.task.task = "text2text-generation";
  refuses(program, decoder, "needs a component encoder");
}

}  // namespace
}  // namespace argosy
