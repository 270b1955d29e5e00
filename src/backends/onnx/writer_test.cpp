#include "backends/onnx/writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/file.h"
#include "io/onnx/onnx_model.h"
#include "io/test_folder.h"

namespace argosy::onnx {
namespace {

namespace fs = std::filesystem;

std::string counting_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

/// A model that only adds its weights, which is all that layouts see of it.
Model with_weights(std::vector<std::pair<std::string, TensorSourcePtr>> weights) {
  Model model;
  model.graphs.resize(1);
  model.values.push_back({"x", DType::kF32, {{Dim("n")}}});
  model.values.push_back({"y", DType::kF32, {{Dim("n")}}});
  model.graphs[0].inputs = {Ref{0}};
  model.graphs[0].outputs = {Ref{1}};
  std::vector<Ref> inputs = {Ref{0}};
  for (auto& [name, source] : weights) {
    model.values.push_back({name});
    inputs.push_back(Ref{static_cast<uint32_t>(model.values.size() - 1)});
    model.initializers.push_back({inputs.back(), std::move(source)});
  }
  model.graphs[0].nodes = {{"Sum", "", inputs, {Ref{1}}, {}, ""}};
  return model;
}

/// A checkpoint's file of 40,000 bytes, and tensors in it.
struct Checkpoint {
  explicit Checkpoint(const TestFolder& folder)
      : path(folder.write("in/model.safetensors", counting_bytes(40'000))), file(*ReadFile::open(path)) {}
  TensorSourcePtr tensor(uint64_t offset, std::vector<int64_t> shape) const {
    return file_slice(file, offset, DType::kF32, std::move(shape)).value();
  }
  fs::path path;
  std::shared_ptr<const ReadFile> file;
};

const OnnxInitializer& find(const OnnxModel& model, std::string_view name) {
  for (const OnnxInitializer& each : model.initializers) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no initializer");
}

TEST(OnnxBundle, equal_tensors_are_written_once_over_all_models) {
  TestFolder folder;
  Checkpoint checkpoint(folder);
  TensorSourcePtr large = checkpoint.tensor(8, {20, 100}), other = checkpoint.tensor(8008, {1100});
  TensorSourcePtr medium = checkpoint.tensor(16008, {300}), small = checkpoint.tensor(16, {4});
  std::vector<NamedModel> models;
  models.push_back({"a.onnx", with_weights({{"medium", medium}, {"large", large}, {"tied", large}, {"small", small}})});
  models.push_back({"b.onnx", with_weights({{"view", reshaped(large, {2000}).value()}, {"other", other}})});
  Bundle bundle = Bundle::build(std::move(models), {}).value();
  fs::create_directory(folder / "out");
  EXPECT_TRUE(bundle.write(folder / "out", {})->empty());

  OnnxModel a = read_onnx_model(folder / "out/a.onnx").value(), b = read_onnx_model(folder / "out/b.onnx").value();
  EXPECT_EQ(find(a, "large").location, "model.onnx.data");
  EXPECT_EQ(find(a, "large").offset, find(a, "tied").offset);
  EXPECT_EQ(find(a, "large").offset, find(b, "view").offset);
  EXPECT_EQ(find(a, "small").location, "");
  EXPECT_EQ(find(a, "large").offset % 4096, 0u);
  EXPECT_EQ(find(b, "other").offset, 8192u);
  EXPECT_EQ(find(a, "medium").offset, 8192u + 4416);  // after the large ones, at a multiple of 64
  std::string data = folder.read("out/model.onnx.data"), in = folder.read("in/model.safetensors");
  EXPECT_EQ(data.size(), bundle.layout().data_bytes());
  EXPECT_EQ(data.substr(find(a, "large").offset, 8000), in.substr(8, 8000));
  EXPECT_EQ(data.substr(find(a, "medium").offset, 1200), in.substr(16008, 1200));
  EXPECT_EQ(bundle.new_bytes(),
            data.size() + fs::file_size(folder / "out/a.onnx") + fs::file_size(folder / "out/b.onnx"));
}

TEST(OnnxBundle, links_what_lies_in_the_checkpoint) {
  TestFolder folder;
  Checkpoint checkpoint(folder);
  TensorSourcePtr large = checkpoint.tensor(8, {20, 100});
  LayoutOptions options;
  options.weights = WeightsMode::kLink;
  options.linkable = {checkpoint.path.native()};
  std::vector<NamedModel> models;
  models.push_back({"a.onnx", with_weights({{"large", large}, {"turned", transposed(large, {1, 0}).value()}})});
  Bundle bundle = Bundle::build(std::move(models), options).value();
  fs::create_directory(folder / "out");
  ASSERT_TRUE(bundle.write(folder / "out", {}));
  OnnxModel a = read_onnx_model(folder / "out/a.onnx").value();
  EXPECT_EQ(find(a, "large").location, "model.safetensors");
  EXPECT_EQ(find(a, "large").offset, 8u);
  EXPECT_EQ(find(a, "turned").location, "model.onnx.data");
  EXPECT_EQ(folder.read("out/model.safetensors"), folder.read("in/model.safetensors"));
  EXPECT_FALSE(fs::is_symlink(folder / "out/model.safetensors"));
  EXPECT_EQ(bundle.linked_bytes(), 8000u);
}

TEST(OnnxBundle, links_only_files_of_the_checkpoint) {
  TestFolder folder;
  Checkpoint checkpoint(folder);
  LayoutOptions options;
  options.weights = WeightsMode::kLink;
  options.linkable = {"/elsewhere/model.safetensors"};
  Model model = with_weights({{"large", checkpoint.tensor(8, {2000})}});
  const Model* models[] = {&model};
  Layout layout = lay_out(models, options).value();
  EXPECT_TRUE(layout.linked.empty());
  EXPECT_EQ(layout.data_files.at(0).tensors.size(), 1u);
}

TEST(OnnxBundle, data_files_have_a_largest_size) {
  TestFolder folder;
  Checkpoint checkpoint(folder);
  LayoutOptions options;
  options.data_file = "a.onnx_data";
  options.max_data_bytes = 10'000;
  std::vector<NamedModel> models;
  models.push_back({"a.onnx", with_weights({{"first", checkpoint.tensor(0, {1250})},
                                            {"too_large", checkpoint.tensor(8, {3000})},
                                            {"third", checkpoint.tensor(16, {1250})},
                                            {"fits", checkpoint.tensor(5016, {400})}})});
  Bundle bundle = Bundle::build(std::move(models), options).value();
  ASSERT_EQ(bundle.layout().data_files.size(), 3u);
  fs::create_directory(folder / "out");
  ASSERT_TRUE(bundle.write(folder / "out", {}));
  OnnxModel a = read_onnx_model(folder / "out/a.onnx").value();
  EXPECT_EQ(find(a, "first").location, "a.onnx_data");
  EXPECT_EQ(find(a, "too_large").location, "a.onnx_data_1");
  EXPECT_EQ(find(a, "third").location, "a.onnx_data_2");
  EXPECT_EQ(find(a, "fits").location, "a.onnx_data_2");
  std::string in = folder.read("in/model.safetensors");
  EXPECT_EQ(folder.read("out/a.onnx_data_1"), in.substr(8, 12'000));
  EXPECT_EQ(folder.read("out/a.onnx_data_2").substr(find(a, "fits").offset, 1600), in.substr(5016, 1600));
}

TEST(OnnxBundle, several_are_written_together_as_each_alone) {
  TestFolder folder;
  Checkpoint checkpoint(folder);
  TensorSourcePtr first = checkpoint.tensor(8, {20, 100}), second = checkpoint.tensor(20'008, {1100});
  auto built = [&](DType dtype) {
    std::vector<NamedModel> models;
    models.push_back({"a.onnx", with_weights({{"second", converted(second, dtype).value()},
                                              {"first", converted(first, dtype).value()}})});
    return Bundle::build(std::move(models), {}).value();
  };
  Bundle wide = built(DType::kF32), narrow = built(DType::kBF16);
  for (const char* name : {"wide", "narrow", "alone-wide", "alone-narrow"}) fs::create_directory(folder / name);
  std::vector<std::pair<const Bundle*, fs::path>> both = {{&wide, folder / "wide"}, {&narrow, folder / "narrow"}};
  TensorWriteOptions threads;
  threads.threads = 2;
  ASSERT_TRUE(write_bundles(both, threads));
  ASSERT_TRUE(wide.write(folder / "alone-wide", {}));
  ASSERT_TRUE(narrow.write(folder / "alone-narrow", {}));
  for (std::string name : {"wide", "narrow"}) {
    for (std::string file : {"/a.onnx", "/model.onnx.data"})
      EXPECT_EQ(folder.read(name + file), folder.read("alone-" + name + file));
  }
  EXPECT_NE(folder.read("wide/model.onnx.data"), folder.read("narrow/model.onnx.data"));
}

TEST(OnnxBundle, embeds) {
  TestFolder folder;
  Checkpoint checkpoint(folder);
  LayoutOptions options;
  options.weights = WeightsMode::kEmbed;
  std::vector<NamedModel> models;
  models.push_back(
      {"a.onnx", with_weights({{"one", checkpoint.tensor(8, {2000})}, {"two", checkpoint.tensor(0, {9000})}})});
  Bundle bundle = Bundle::build(std::move(models), options).value();
  fs::create_directory(folder / "out");
  TensorWriteOptions threads;
  threads.threads = 4;
  ASSERT_TRUE(bundle.write(folder / "out", threads));
  EXPECT_FALSE(fs::exists(folder / "out/model.onnx.data"));
  std::string bytes = folder.read("out/a.onnx"), in = folder.read("in/model.safetensors");
  EXPECT_EQ(bytes, to_bytes(bundle.encoded(0).value()).value());
  EXPECT_NE(bytes.find(in.substr(0, 36000)), std::string::npos);
  EXPECT_EQ(find(read_onnx_model(folder / "out/a.onnx").value(), "two").bytes, 36000u);
}

TEST(OnnxBundle, rejects_weights_without_bytes) {
  std::vector<NamedModel> models;
  models.push_back({"a.onnx", with_weights({{"w", shape_only(DType::kF32, {2000}, "w").value()}})});
  expect_error(Bundle::build(std::move(models), {}), ErrorCode::kNotFound, "\"w\"");
}

TEST(OnnxBundle, reports_values_that_become_infinite) {
  std::vector<float> values(1000, 1.0f);
  values[3] = 1e6f;
  values[900] = -70000.0f;
  values[901] = std::numeric_limits<float>::infinity();  // was infinite before
  auto source = [](std::span<const float> part) {
    auto bytes = std::as_bytes(part);
    TensorSourcePtr made =
        literal({bytes.begin(), bytes.end()}, DType::kF32, {static_cast<int64_t>(part.size())}).value();
    return converted(made, DType::kF16).value();
  };
  TestFolder folder;
  std::vector<NamedModel> models;
  models.push_back({"a.onnx", with_weights({{"large", source(values)},
                                            {"small", source(std::span(values).first(8))},
                                            {"fine", source(std::span(values).subspan(4, 800))}})});
  Bundle bundle = Bundle::build(std::move(models), {}).value();
  fs::create_directory(folder / "out");
  std::vector<Overflow> overflows = bundle.write(folder / "out", {}).value();
  ASSERT_EQ(overflows.size(), 2u);
  EXPECT_EQ(overflows[0].tensor, "large");
  EXPECT_EQ(overflows[0].values, 2u);
  EXPECT_EQ(overflows[1].tensor, "small");
  EXPECT_EQ(overflows[1].values, 1u);

  std::vector<std::pair<const Bundle*, fs::path>> both = {{&bundle, folder / "first"}, {&bundle, folder / "second"}};
  for (const auto& [each, where] : both) fs::create_directory(where);
  overflows = write_bundles(both, {}).value();
  std::vector<std::pair<std::string, size_t>> found;
  for (const Overflow& each : overflows) found.emplace_back(each.tensor, each.bundle);
  EXPECT_EQ(found, (decltype(found){{"large", 0}, {"large", 1}, {"small", 0}, {"small", 1}}));
}

}  // namespace
}  // namespace argosy::onnx
