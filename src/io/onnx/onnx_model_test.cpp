#include "io/onnx/onnx_model.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "io/onnx/onnx_fields.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

using protozero::pbf_writer;
namespace field = onnx_field;

/// A message as bytes.
template <class Fill>
std::string message(Fill fill) {
  std::string bytes;
  pbf_writer writer(bytes);
  fill(writer);
  return bytes;
}

std::string value(std::string_view name, int type, const std::vector<std::string>& dims) {
  std::string shape = message([&](pbf_writer& w) {
    for (const std::string& dim : dims) {
      w.add_message(field::TensorShapeProto_dim, message([&](pbf_writer& d) {
                      if (!dim.empty() && std::isdigit(dim[0])) {
                        d.add_int64(field::TensorShapeProto_Dimension_dim_value, std::stoll(dim));
                      } else if (!dim.empty()) {
                        d.add_string(field::TensorShapeProto_Dimension_dim_param, dim);
                      }
                    }));
    }
  });
  std::string tensor = message([&](pbf_writer& w) {
    w.add_int32(field::TypeProto_Tensor_elem_type, type);
    w.add_message(field::TypeProto_Tensor_shape, shape);
  });
  return message([&](pbf_writer& w) {
    w.add_string(field::ValueInfoProto_name, name.data(), name.size());
    w.add_message(field::ValueInfoProto_type,
                  message([&](pbf_writer& t) { t.add_message(field::TypeProto_tensor_type, tensor); }));
  });
}

std::string node(const std::string& op, const std::string& domain = "", const std::string& subgraph = "") {
  return message([&](pbf_writer& w) {
    w.add_string(field::NodeProto_op_type, op);
    if (!domain.empty()) w.add_string(field::NodeProto_domain, domain);
    if (!subgraph.empty()) {
      w.add_message(field::NodeProto_attribute,
                    message([&](pbf_writer& a) { a.add_message(field::AttributeProto_g, subgraph); }));
    }
  });
}

struct Tensor {
  std::string name = "w";
  int type = 1;
  std::vector<int64_t> dims = {2, 3};
  std::string raw = std::string(24, 'x');
  std::string location = {}, offset = {}, length = {};
};

std::string tensor(const Tensor& t) {
  auto entry = [](const std::string& key, const std::string& text) {
    return message([&](pbf_writer& w) {
      w.add_string(field::StringStringEntryProto_key, key);
      w.add_string(field::StringStringEntryProto_value, text);
    });
  };
  return message([&](pbf_writer& w) {
    w.add_packed_int64(field::TensorProto_dims, t.dims.begin(), t.dims.end());
    w.add_int32(field::TensorProto_data_type, t.type);
    w.add_string(field::TensorProto_name, t.name);
    if (t.location.empty()) {
      w.add_bytes(field::TensorProto_raw_data, t.raw);
      return;
    }
    w.add_int32(field::TensorProto_data_location, 1);
    w.add_message(field::TensorProto_external_data, entry("location", t.location));
    if (!t.offset.empty()) w.add_message(field::TensorProto_external_data, entry("offset", t.offset));
    if (!t.length.empty()) w.add_message(field::TensorProto_external_data, entry("length", t.length));
  });
}

std::string model(const std::string& graph) {
  return message([&](pbf_writer& w) {
    w.add_int64(field::ModelProto_ir_version, 10);
    w.add_string(field::ModelProto_producer_name, "test");
    w.add_message(field::ModelProto_graph, graph);
    for (int version : {21, 1}) {
      w.add_message(field::ModelProto_opset_import, message([&](pbf_writer& o) {
                      if (version == 1) o.add_string(field::OperatorSetIdProto_domain, "com.microsoft");
                      o.add_int64(field::OperatorSetIdProto_version, version);
                    }));
    }
  });
}

std::string model_with(const Tensor& t) {
  return model(message([&](pbf_writer& w) { w.add_message(field::GraphProto_initializer, tensor(t)); }));
}

void expect_refused(const std::string& bytes, std::string_view part) {
  expect_error(parse_onnx_model(bytes, "m.onnx"), ErrorCode::kCorruptFile, part);
}

TEST(OnnxModel, reads_a_model) {
  std::string inner = message([&](pbf_writer& w) {
    w.add_message(field::GraphProto_node, node("Add"));
    w.add_message(field::GraphProto_initializer, tensor({.name = "inner"}));
  });
  std::string bytes = model(message([&](pbf_writer& w) {
    w.add_string(field::GraphProto_name, "main");
    w.add_message(field::GraphProto_input, value("ids", 7, {"batch", "4", ""}));
    w.add_message(field::GraphProto_output, value("logits", 10, {}));
    w.add_message(field::GraphProto_node, node("Mul"));
    w.add_message(field::GraphProto_node, node("Add", "ai.onnx"));
    w.add_message(field::GraphProto_node, node("If", "", inner));
    w.add_message(field::GraphProto_node, node("MatMulNBits", "com.microsoft"));
    w.add_message(field::GraphProto_initializer, tensor({}));
    w.add_message(field::GraphProto_initializer, tensor({.name = "q", .type = 21, .dims = {3}, .raw = "xx"}));
  }));
  auto read = parse_onnx_model(bytes, "m.onnx");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->ir_version, 10);
  EXPECT_EQ(read->producer_name, "test");
  EXPECT_EQ(read->graph_name, "main");
  ASSERT_EQ(read->opset_imports.size(), 2u);
  EXPECT_EQ(read->opset_imports[0], (std::pair<std::string, int64_t>("", 21)));
  ASSERT_EQ(read->inputs.size(), 1u);
  EXPECT_EQ(read->inputs[0].type, "i64");
  ASSERT_EQ(read->inputs[0].shape.size(), 3u);
  EXPECT_EQ(read->inputs[0].shape[0].name, "batch");
  EXPECT_EQ(read->inputs[0].shape[1].value, 4);
  EXPECT_FALSE(read->inputs[0].shape[2].value.has_value());
  EXPECT_TRUE(read->outputs[0].has_shape);
  ASSERT_EQ(read->ops.size(), 4u);
  EXPECT_EQ(read->ops[0].op_type, "Add");
  EXPECT_EQ(read->ops[0].count, 2u);
  EXPECT_EQ(read->ops[3].domain, "com.microsoft");
  ASSERT_EQ(read->initializers.size(), 3u);
  EXPECT_EQ(read->initializers[0].name, "inner");
  EXPECT_EQ(read->initializers[1].bytes, 24u);
  EXPECT_EQ(read->initializers[2].dtype, DType::kU4);
  EXPECT_EQ(read->initializers[2].bytes, 2u);
}

/// A node with the names of what it reads and gives.
std::string wired(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                  const std::string& subgraph = "") {
  return message([&](pbf_writer& w) {
    for (const std::string& input : inputs) w.add_string(field::NodeProto_input, input);
    w.add_string(field::NodeProto_output, output);
    w.add_string(field::NodeProto_name, "layers.0/" + op);
    w.add_string(field::NodeProto_op_type, op);
    w.add_message(field::NodeProto_attribute, message([&](pbf_writer& a) {
                    a.add_string(field::AttributeProto_name, "axis");
                    if (subgraph.empty()) a.add_int64(field::AttributeProto_i, -1);
                    if (!subgraph.empty()) a.add_message(field::AttributeProto_g, subgraph);
                  }));
  });
}

TEST(OnnxModel, keeps_nodes_if_asked_to) {
  std::string inner = message([&](pbf_writer& w) {
    w.add_message(field::GraphProto_node, wired("Neg", {"a"}, "b"));
    w.add_message(field::GraphProto_node, wired("Abs", {"b"}, "c"));
  });
  std::string bytes = model(message([&](pbf_writer& w) {
    w.add_message(field::GraphProto_input, value("x", 1, {"4"}));
    w.add_message(field::GraphProto_output, value("b", 1, {"4"}));
    w.add_message(field::GraphProto_node, wired("Add", {"x", "", "w"}, "a"));
    w.add_message(field::GraphProto_node, wired("If", {"x"}, "d", inner));
    w.add_message(field::GraphProto_node, wired("Neg", {"d"}, "b"));
    w.add_message(field::GraphProto_initializer, tensor({}));
  }));
  EXPECT_TRUE(parse_onnx_model(bytes, "m.onnx")->graph.nodes.empty());
  auto read = parse_onnx_model(bytes, "m.onnx", OnnxExternalData::kMustBeSound, OnnxNodes::kRead);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const OnnxGraph& graph = read->graph;
  ASSERT_EQ(graph.nodes.size(), 5u);
  const OnnxNode &add = graph.nodes[0], &neg = graph.nodes[1], &abs = graph.nodes[2], &last = graph.nodes[4];
  EXPECT_EQ(graph.ops[add.op].second, "Add");
  EXPECT_EQ(add.name, "layers.0/Add");
  EXPECT_EQ(add.integer("axis", 0), -1);
  EXPECT_EQ(add.integer("other", 7), 7);
  EXPECT_EQ(add.inputs, (std::vector<uint32_t>{graph.inputs[0], OnnxNode::kNothing, graph.initializers[0]}));
  EXPECT_EQ(neg.op, last.op);
  EXPECT_EQ(neg.inputs, add.outputs);
  EXPECT_EQ(abs.inputs, neg.outputs);
  // The name stands for two values: one of the sub-graph, and one outside of it.
  EXPECT_NE(neg.outputs, last.outputs);
  EXPECT_EQ(last.outputs, graph.outputs);
}

TEST(OnnxModel, looks_at_external_files) {
  TestFolder folder;
  auto path = folder.write("m.onnx", model_with({.location = "m.data", .offset = "8", .length = "24"}));
  auto read = read_onnx_model(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->external_files.size(), 1u);
  EXPECT_EQ(read->external_files[0].needed_bytes, 32u);
  EXPECT_FALSE(read->external_files[0].available_bytes.has_value());
  EXPECT_EQ(read->initializers[0].location, "m.data");
  EXPECT_EQ(read->initializers[0].offset, 8u);
  folder.write("m.data", std::string(32, 'x'));
  EXPECT_EQ(read_onnx_model(path)->external_files[0].available_bytes, 32u);
  folder.write("m.data", std::string(30, 'x'));
  expect_error(read_onnx_model(path), ErrorCode::kCorruptFile, "of which 2 are missing");
}

TEST(OnnxModel, records_unsound_external_data_for_those_who_judge) {
  TestFolder folder;
  auto path = folder.write("m.onnx", model_with({.location = "../m.data"}));
  auto read = read_onnx_model(path, OnnxExternalData::kAsWritten);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->external_files[0].location, "../m.data");
  EXPECT_FALSE(read->external_files[0].available_bytes.has_value());
  folder.write("m.data", "too short");
  path = folder.write("n.onnx", model_with({.location = "m.data"}));
  read = read_onnx_model(path, OnnxExternalData::kAsWritten);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->external_files[0].available_bytes, 9u);
  EXPECT_EQ(read->external_files[0].needed_bytes, 24u);
}

TEST(OnnxModel, knows_external_data_of_attributes) {
  std::string constant = message([&](pbf_writer& w) {
    w.add_string(field::NodeProto_op_type, "Constant");
    w.add_message(field::NodeProto_attribute, message([&](pbf_writer& a) {
                    a.add_message(field::AttributeProto_t, tensor({.location = "c.data"}));
                  }));
  });
  auto read =
      parse_onnx_model(model(message([&](pbf_writer& w) { w.add_message(field::GraphProto_node, constant); })), "m");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->initializers.empty());
  ASSERT_EQ(read->external_files.size(), 1u);
  EXPECT_EQ(read->external_files[0].location, "c.data");
}

TEST(OnnxModel, rejects_truncated_and_malformed_protobuf) {
  std::string bytes = model_with({});
  for (size_t size = 0; size < bytes.size() - 40; ++size) {
    EXPECT_FALSE(parse_onnx_model(std::string_view(bytes).substr(0, size), "m").has_value()) << size;
  }
  expect_refused(std::string(100, '\xff'), "protobuf is malformed");
  expect_refused("\x0b\x0c", "protobuf is malformed");
  expect_refused("", "no IR version");
  expect_refused(message([](pbf_writer& w) { w.add_int64(field::ModelProto_ir_version, 8); }), "no graph");
  expect_refused(model("") + model(""), "two graphs");
}

TEST(OnnxModel, ignores_fields_of_another_wire_type) {
  std::string graph = message([](pbf_writer& w) { w.add_int64(field::GraphProto_node, 5); });
  EXPECT_TRUE(parse_onnx_model(model(graph), "m").has_value());
}

TEST(OnnxModel, rejects_deep_nesting) {
  std::string graph = message([](pbf_writer& w) { w.add_message(field::GraphProto_node, node("Add")); });
  for (int i = 0; i < 80; ++i) {
    graph = message([&](pbf_writer& w) { w.add_message(field::GraphProto_node, node("If", "", graph)); });
  }
  expect_refused(model(graph), "nested more than 64");
  std::string type = message([](pbf_writer&) {});
  for (int i = 0; i < 80; ++i) {
    type = message([&](pbf_writer& w) {
      w.add_message(field::TypeProto_sequence_type,
                    message([&](pbf_writer& s) { s.add_message(field::TypeProto_Sequence_elem_type, type); }));
    });
  }
  std::string input = message([&](pbf_writer& w) { w.add_message(field::ValueInfoProto_type, type); });
  expect_refused(model(message([&](pbf_writer& w) { w.add_message(field::GraphProto_input, input); })),
                 "types are nested");
}

TEST(OnnxModel, rejects_bad_tensors) {
  expect_refused(model_with({.raw = "short"}), "24 bytes by its type and shape, but holds 5");
  expect_refused(model_with({.dims = {-1}}), "negative or overflows");
  expect_refused(model_with({.dims = {INT64_MAX, 4}}), "negative or overflows");
  expect_refused(model_with({.dims = std::vector<int64_t>(2000, 1)}), "more than 1024 dims");
}

TEST(OnnxModel, rejects_bad_external_data) {
  for (const char* location : {"../m.data", "/m.data", "a/../../m.data", "a\\m.data"}) {
    expect_refused(model_with({.location = location}), "not a plain path");
  }
  expect_refused(model_with({.location = "m", .offset = "-1"}), "the offset of");
  expect_refused(model_with({.location = "m", .offset = "x"}), "the offset of");
  expect_refused(model_with({.location = "m", .offset = "18446744073709551615"}), "beyond all files");
  expect_refused(model_with({.location = "m", .length = "23"}), "but 23 in its external file");
}

TEST(OnnxModel, rejects_names_that_are_not_utf8) { expect_refused(model_with({.name = "\xff"}), "not UTF-8"); }

TEST(OnnxModel, rejects_nodes_without_an_op) {
  std::string graph = message([](pbf_writer& w) { w.add_message(field::GraphProto_node, std::string()); });
  expect_refused(model(graph), "no op_type");
}

}  // namespace
}  // namespace argosy
