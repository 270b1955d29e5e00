#include "backends/onnx/encode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <ctime>

#include "backends/onnx/names.h"
#include "base/text.h"
#include "io/onnx/onnx_model.h"

namespace argosy::onnx {
namespace {

TensorSourcePtr floats(std::vector<int64_t> shape, float first = 0) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  std::vector<std::byte> bytes(static_cast<size_t>(count) * 4);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    float value = first + static_cast<float>(i);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return literal(std::move(bytes), DType::kF32, std::move(shape)).value();
}

Ref add(Model& model, Value value) {
  model.values.push_back(std::move(value));
  return Ref{static_cast<uint32_t>(model.values.size() - 1)};
}

/// y = (x + bias) @ weight, with a weight that is not small.
Model small_model() {
  Model model;
  model.graphs.resize(1);
  Ref x = add(model, {"x", DType::kF32, {{Dim("batch"), Dim(int64_t{24}), Dim("")}}});
  Ref bias = add(model, {"bias"}), weight = add(model, {"weight"}), sum = add(model, {});
  Ref y = add(model, {"y", DType::kF32, {{Dim("batch"), Dim(int64_t{24}), Dim(int64_t{32})}}});
  model.graphs[0].inputs = {x};
  model.graphs[0].outputs = {y};
  model.graphs[0].nodes = {{"Add", "", {x, bias}, {sum}, {}, "layers.0"}, {"MatMul", "", {sum, weight}, {y}, {}, ""}};
  model.initializers = {{bias, floats({24})}, {weight, floats({24, 32})}};
  model.metadata = {{"b", "2"}, {"a", "1"}};
  return model;
}

std::string encoded_bytes(Model model, std::vector<TensorPlace> places) {
  name_model(model);
  return to_bytes(encode(model, places).value()).value();
}

TEST(OnnxEncode, reads_back) {
  OnnxModel read = parse_onnx_model(encoded_bytes(small_model(), {{}, {}}), "m").value();
  EXPECT_EQ(read.ir_version, 10);
  EXPECT_EQ(read.producer_name, "argosy");
  EXPECT_EQ(read.opset_imports, (std::vector<std::pair<std::string, int64_t>>{{"", 22}}));
  EXPECT_EQ(read.metadata_props, (std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "2"}}));
  ASSERT_EQ(read.inputs.size(), 1u);
  EXPECT_EQ(read.inputs[0].type, "f32");
  ASSERT_EQ(read.inputs[0].shape.size(), 3u);
  EXPECT_EQ(read.inputs[0].shape[0].name, "batch");
  EXPECT_EQ(read.inputs[0].shape[1].value, 24);
  EXPECT_FALSE(read.inputs[0].shape[2].value);
  ASSERT_EQ(read.initializers.size(), 2u);
  EXPECT_EQ(read.initializers[1].name, "weight");
  EXPECT_EQ(read.initializers[1].shape, (std::vector<int64_t>{24, 32}));
  EXPECT_EQ(read.initializers[1].bytes, 24u * 32 * 4);
  EXPECT_EQ(read.initializers[1].location, "");
  EXPECT_EQ(read.ops.size(), 2u);
}

TEST(OnnxEncode, names_external_data) {
  OnnxModel read = parse_onnx_model(encoded_bytes(small_model(), {{}, {"m.onnx.data", 4096}}), "m").value();
  EXPECT_EQ(read.initializers[0].location, "");
  EXPECT_EQ(read.initializers[1].location, "m.onnx.data");
  EXPECT_EQ(read.initializers[1].offset, 4096u);
  ASSERT_EQ(read.external_files.size(), 1u);
  EXPECT_EQ(read.external_files[0].needed_bytes, 4096u + 24 * 32 * 4);
}

TEST(OnnxEncode, large_tensors_are_gaps) {
  Model model = small_model();
  name_model(model);
  EncodedModel encoded = encode(model, std::vector<TensorPlace>(2)).value();
  ASSERT_EQ(encoded.gaps.size(), 1u);
  std::string bytes = to_bytes(encoded).value();
  EXPECT_EQ(bytes.size(), encoded.size());
  float first;
  std::memcpy(&first, bytes.data() + encoded.gaps[0].before + 4, 4);
  EXPECT_EQ(first, 1.0f);
}

TEST(OnnxEncode, keeps_scalars_apart_from_unknown_shapes) {
  Model model = small_model();
  model.values[0].shape = std::vector<Dim>{};
  EXPECT_TRUE(parse_onnx_model(encoded_bytes(model, {{}, {}}), "m").value().inputs[0].has_shape);
  model.values[0].shape.reset();
  EXPECT_FALSE(parse_onnx_model(encoded_bytes(model, {{}, {}}), "m").value().inputs[0].has_shape);
}

TEST(OnnxEncode, sequences_subgraphs_and_domains) {
  Model model = small_model();
  model.values[0].is_sequence = true;
  Ref inner = add(model, {"y"});  // taken already
  model.graphs.push_back({"", {}, {inner}, {{"Gelu", "com.microsoft", {Ref{0}}, {inner}, {}, ""}}});
  model.graphs[0].nodes[0].attributes = {{"then_branch", uint32_t{1}},
                                         {"axes", std::vector<int64_t>{-1, 2}},
                                         {"value", floats({2})},
                                         {"alpha", 0.5f},
                                         {"mode", std::string("floor")}};
  OnnxModel read = parse_onnx_model(encoded_bytes(model, {{}, {}}), "m").value();
  EXPECT_EQ(read.inputs[0].type, "sequence(f32)");
  EXPECT_EQ(read.ops.size(), 3u);
  EXPECT_EQ(read.opset_imports, (std::vector<std::pair<std::string, int64_t>>{{"", 22}, {"com.microsoft", 1}}));
}

TEST(OnnxEncode, rejects_dtypes_that_onnx_lacks) {
  Model model = small_model();
  model.values[0].dtype = DType::kC32;
  name_model(model);
  auto encoded = encode(model, std::vector<TensorPlace>(2));
  ASSERT_FALSE(encoded);
  EXPECT_NE(encoded.error().message.find("c32"), std::string::npos);
}

TEST(OnnxEncode, rejects_more_than_protobuf_takes) {
  Model model = small_model();
  model.initializers[1].tensor = shape_only(DType::kF32, {1 << 15, 1 << 14}, "w").value();
  name_model(model);
  auto encoded = encode(model, std::vector<TensorPlace>(2));
  ASSERT_FALSE(encoded);
  EXPECT_NE(encoded.error().hint.find("copy"), std::string::npos);
}

TEST(OnnxNames, are_unique_and_kept) {
  Model model = small_model();
  Graph& graph = model.graphs[0];
  // Two more of the same name, and one without that would be called as another is.
  Ref first = add(model, {"hidden"}), second = add(model, {"hidden"}), third = add(model, {"Add_0"});
  for (Ref ref : {first, second, third}) graph.nodes.push_back({"Add", "", {Ref{0}, Ref{0}}, {ref}, {}, "layers.0"});
  graph.outputs.push_back(third);
  name_model(model);
  EXPECT_EQ(model.values[0].name, "x");
  EXPECT_EQ(model.values[4].name, "y");
  EXPECT_EQ(model[first].name, "hidden");
  EXPECT_EQ(model[second].name, "hidden_2");
  EXPECT_EQ(model[third].name, "Add_0");
  EXPECT_EQ(model.values[3].name, "Add_1");
  EXPECT_EQ(graph.nodes[0].name, "layers.0/Add");
  EXPECT_EQ(graph.nodes[2].name, "layers.0/Add_2");
  EXPECT_EQ(graph.nodes[1].name, "MatMul");
  EXPECT_EQ(graph.name, "main");
}

/// CPU seconds for a model of so many nodes.
double seconds_to_encode(int nodes) {
  Model model = small_model();
  Ref last{0};
  for (int i = 0; i < nodes; ++i) {
    Ref next = add(model, {i % 2 == 0 ? "hidden" : ""});
    model.graphs[0].nodes.push_back({"Add", "", {last, last}, {next}, {}, format("layers.{}", i % 7)});
    last = next;
  }
  std::clock_t start = std::clock();
  std::string bytes = encoded_bytes(model, {{}, {}});
  double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_GT(bytes.size(), static_cast<size_t>(nodes) * 10);
  return seconds;
}

// Five times the nodes take five times as long, or 25 times if the time grows with the square.
TEST(OnnxEncode, is_linear) { EXPECT_LT(seconds_to_encode(100'000), 11 * seconds_to_encode(20'000)); }

}  // namespace
}  // namespace argosy::onnx
