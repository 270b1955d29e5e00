#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "driver/export_hooks.h"
#include "driver/onnx/export_onnx.h"
#include "io/safetensors_writer.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldenCapture = fs::path(ARGOSY_TESTS) / "capture" / "version_1.capture";

std::string read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Exports of the golden capture, whose graphs get two more weights of the checkpoint, large enough for a data file.
class VariantFolders : public testing::Test {
 protected:
  VariantFolders() {
    std::vector<NamedSource> tensors = {source("embedding.weight", {16, 4}, 1), source("head.weight", {16, 4}, 1),
                                        source("head.bias", {16}, 1),           source("calls", {1}, 1),
                                        source("more.first", {1000}, kFirst),   source("more.second", {1000}, kSecond)};
    SafetensorsLayout layout = lay_out_safetensors(std::move(tensors)).value();
    OutputFile file = OutputFile::create(folder_ / "model.safetensors", Overwrite::kRefuse).value();
    EXPECT_TRUE(write_safetensors(layout, file, 1 << 20) && file.commit());
    checkpoint_ = Checkpoint::open(folder_ / "model.safetensors").value();
    hooks_.on_onnx_graphs = [&](auto& graphs) { return add_weights(graphs, DType::kF32); };
    half_hooks_.on_onnx_graphs = [&](auto& graphs) { return add_weights(graphs, DType::kF16); };
  }

  Status add_weights(std::vector<onnx::NamedModel>& graphs, DType dtype) const {
    onnx::Model& model = graphs[0].model;
    for (const char* name : {"more.second", "more.first"}) {
      ARGOSY_TRY(TensorSourcePtr tensor, checkpoint_->tensor(name));
      ARGOSY_TRY(tensor, converted(std::move(tensor), dtype));
      model.initializers.push_back({onnx::Ref{static_cast<uint32_t>(model.values.size())}, std::move(tensor)});
      model.values.push_back({name});
    }
    return {};
  }

  static NamedSource source(std::string name, std::vector<int64_t> shape, float value) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    std::vector<float> values(static_cast<size_t>(count), value);
    auto bytes = std::as_bytes(std::span(values));
    return {std::move(name), literal({bytes.begin(), bytes.end()}, DType::kF32, std::move(shape)).value()};
  }

  OnnxVariant variant(std::string name, const ExportHooks& hooks) const {
    OnnxVariant made{std::move(name), {}, {}};
    made.input.capture = kGoldenCapture;
    made.input.checkpoint = &*checkpoint_;
    made.options.hooks = &hooks;
    return made;
  }

  /// How many of the data files that are being written have a weight.
  size_t count_files_with(float value) const {
    const std::vector<float> values(1000, value);
    const std::string_view wanted(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    size_t count = 0;
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(folder_.path())) {
      bool is_data = each.path().filename().native().find("model.onnx.data") != std::string::npos;
      if (is_data && read_whole(each.path()).find(wanted) != std::string::npos) ++count;
    }
    return count;
  }

  static constexpr float kFirst = 1.5f, kSecond = 70'000.0f;  // the second is too large for f16

  TestFolder folder_;
  std::optional<Checkpoint> checkpoint_;
  ExportHooks hooks_, half_hooks_;
  Diagnostics diagnostics_;
};

TEST_F(VariantFolders, are_written_in_the_order_of_the_checkpoint) {
  std::vector<OnnxVariant> variants = {variant("fp32", hooks_), variant("q4", hooks_)};
  auto made = prepare_onnx_variants(std::move(variants), {folder_ / "out", true}, diagnostics_);
  ASSERT_TRUE(made) << to_text(made.error());
  std::vector<std::pair<size_t, size_t>> seen;  // files with the first, with the second
  ExportWriteOptions options;
  options.progress = [&](const Progress&) {
    std::pair now(count_files_with(kFirst), count_files_with(kSecond));
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  };
  Status written = (*made)->write(options);
  ASSERT_TRUE(written) << to_text(written.error());
  EXPECT_EQ(seen, (decltype(seen){{1, 0}, {2, 0}, {2, 1}, {2, 2}}));
  EXPECT_TRUE(fs::exists(folder_ / "out/fp32/model.onnx.data") && fs::exists(folder_ / "out/q4/bundle.json"));
}

TEST_F(VariantFolders, warn_of_their_own_values) {
  std::vector<OnnxVariant> variants = {variant("fp32", hooks_), variant("fp16", half_hooks_), variant("q4", hooks_)};
  auto made = prepare_onnx_variants(std::move(variants), {folder_ / "out", true}, diagnostics_);
  ASSERT_TRUE(made) << to_text(made.error());
  std::vector<std::string> warnings;
  ExportWriteOptions options;
  options.on_warning = [&](const std::string& text) {
    if (text.find("float16") != std::string::npos) warnings.push_back(text);
  };
  ASSERT_TRUE((*made)->write(options));
  EXPECT_EQ(warnings,
            std::vector<std::string>{"fp16: 1000 values of more.second are too large for float16 and became infinite"});
}

}  // namespace
}  // namespace argosy
