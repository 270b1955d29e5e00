// What the writer of .pt2 archives writes, the reader reads as the same program.

#include <gtest/gtest.h>

#include "backends/pt2/document.h"
#include "backends/pt2/writer.h"
#include "frontends/pt2/archive.h"
#include "frontends/pt2/graph_json_testing.h"
#include "frontends/read_program.h"
#include "frontends/zip_testing.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace argosy {
namespace {

using T = GraphText;

Program read_ok(const std::string& text) {
  Result<Program> program = read_test_program(text);
  EXPECT_TRUE(program.has_value()) << (program ? "" : to_text(program.error()));
  return program ? *std::move(program) : Program{};
}

/// Writes the graph and reads it again.
Program again(const Program& program) {
  Result<std::string> text = write_graph_json(program, program.components[0]);
  EXPECT_TRUE(text.has_value()) << (text ? "" : to_text(text.error()));
  return text ? read_ok(*text) : Program{};
}

GraphText rich_graph() {
  GraphText text;
  text.add_parameter("p_w", "layer.weight", 7, {4});
  text.tensor_values.push_back(T::tensor("x", 7, {T::symbol("s0"), T::size(4)}, {T::size(4), T::size(1)}));
  text.add_declared_input("x").add_input("i", 5, {2, 4});
  text.inputs.push_back(R"({"as_float": "-Infinity"})");
  text.input_specs.push_back(R"({"constant_input": {"name": "bound", "value": {"as_float": "-Infinity"}}})");
  text.nodes.push_back(T::node("torch.ops.aten.sym_size.int",
                               {T::argument("self", T::value("x")), T::argument("dim", R"({"as_int": 0})")},
                               {R"({"as_sym_int": {"as_name": "n"}})"}));
  text.sym_int_values.push_back("\"n\": " + T::symbol("s0"));
  text.nodes.push_back(T::node(
      "_operator.mul", {T::argument("a", R"({"as_sym_int": {"as_name": "n"}})"), T::argument("b", R"({"as_int": 2})")},
      {R"({"as_sym_int": {"as_name": "double"}})"}));
  std::string twice = T::expression("Mul(Integer(2), Symbol('s0', positive=True, integer=True))");
  text.sym_int_values.push_back("\"double\": " + twice);
  text.nodes.push_back(
      T::node("torch.ops.aten.full.default",
              {T::argument("size", R"({"as_sym_ints": [{"as_name": "double"}, {"as_int": 4}]})"),
               T::argument("fill_value", R"({"as_float": "-Infinity"})"),
               R"({"name": "dtype", "arg": {"as_scalar_type": 7}, "kind": 2})",
               R"({"name": "device", "arg": {"as_device": {"type": "cpu", "index": null}}, "kind": 2})"},
              {T::value("filled")}));
  text.tensor_values.push_back(T::tensor("filled", 7, {twice, T::size(4)}, {T::size(4), T::size(1)}));
  text.add_node("torch.ops.aten.add.Tensor",
                {T::argument("self", T::value("p_w")), T::argument("other", R"({"as_int": 1})")}, "sum", 7, {4});
  text.nodes.push_back(T::node("torch.ops.aten.split.Tensor",
                               {T::argument("self", T::value("i")), T::argument("split_size", R"({"as_int": 1})")},
                               {R"({"as_tensors": [{"name": "s_0"}, {"name": "s_1"}]})"}));
  text.tensor_values.push_back(T::tensor("s_0", 5, {1, 4}));
  text.tensor_values.push_back(T::tensor("s_1", 5, {1, 4}));
  text.add_node(
      "torch.ops.aten.index.Tensor",
      {T::argument("self", T::value("x")),
       T::argument("indices", format(R"({{"as_optional_tensors": [{{"as_none": true}}, {}]}})", T::value("s_0")))},
      "picked", 7, {2, 4});
  text.nodes.push_back(T::node(
      "torch.ops.aten.topk.default", {T::argument("self", T::value("sum")), T::argument("k", R"({"as_int": 1})")},
      {T::value("top"), T::value("where")},
      R"({"nn_module_stack": "L__self__a@1,a,Head", "stack_trace": "File \"/x/site-packages/a/b.py\", line 3, in f"})"));
  text.tensor_values.push_back(T::tensor("top", 7, {1}));
  text.tensor_values.push_back(T::tensor("where", 5, {1}));
  text.ranges.push_back(R"("s0": {"min_val": 2, "max_val": null})");
  text.guards.push_back("\"L['x'].size()[0] <= 64\"");
  text.add_output("top").add_output("filled");
  text.outputs.push_back(R"({"as_none": true})");
  text.output_specs.push_back(R"({"user_output": {"arg": {"as_none": true}}})");
  return text;
}

TEST(Pt2RoundTrip, a_graph_reads_back_as_it_was) {
  Program program = read_ok(rich_graph().text());
  for (const Error& error : verify(program).errors) ADD_FAILURE() << to_text(error);
  Program back = again(program);
  EXPECT_EQ(difference(program, back), std::nullopt);
  EXPECT_EQ(write_graph_json(program, program.components[0]).value(),
            write_graph_json(back, back.components[0]).value());
}

TEST(Pt2RoundTrip, defaults_are_left_out_and_infinities_keep_their_sign) {
  Program program = read_ok(rich_graph().text());
  std::string text = write_graph_json(program, program.components[0]).value();
  EXPECT_NE(text.find(R"("fill_value","arg":{"as_float":"-Infinity"})"), std::string::npos);
  EXPECT_EQ(text.find("pin_memory"), std::string::npos);
  EXPECT_NE(text.find("\"Symbol('s0', positive=True, integer=True)\",\"hint\":{\"as_int\":3}"), std::string::npos);
}

TEST(Pt2RoundTrip, archives_of_a_capture_read_back) {
  std::filesystem::path golden = std::filesystem::path(ARGOSY_TESTS) / "capture" / "version_1.capture";
  Result<Program> program = read_program(golden, {});
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  Pt2WriteOptions options;
  options.path = test_file(".pt2");
  options.overwrite = Overwrite::kReplace;
  Status refused = write_pt2(*program, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(options.path));
  options.missing_weights = MissingWeights::kLeaveEmpty;
  Status written = write_pt2(*program, options);
  ASSERT_TRUE(written.has_value()) << to_text(written.error());
  ZipEntries first = read_zip(options.path);
  ASSERT_TRUE(write_pt2(*program, options).has_value());
  EXPECT_EQ(first, read_zip(options.path));

  SchemaLibrary library;
  for (size_t i = 0; i < program->schemas.size(); ++i) {
    const OpSchema& schema = program->schemas[OpId{static_cast<uint32_t>(i)}];
    ASSERT_TRUE(library.add(schema.text).has_value());
  }
  Result<ZipReader> zip = ZipReader::open(options.path);
  ASSERT_TRUE(zip.has_value()) << to_text(zip.error());
  Result<Program> back = read_pt2(*zip, {.schemas = &library, .diagnostics = nullptr, .sample_inputs = nullptr});
  ASSERT_TRUE(back.has_value()) << to_text(back.error());
  for (const Error& error : verify(*back).errors) ADD_FAILURE() << to_text(error);
  ASSERT_EQ(back->components.size(), 2u);
  EXPECT_EQ(back->components[1].entry().node_count(), program->components[1].entry().node_count());
  EXPECT_EQ(back->components[1].graphs.size(), 3u);
  std::filesystem::remove(options.path);
}

TEST(Pt2RoundTrip, tied_weights_share_an_entry) {
  GraphText text;
  text.add_parameter("p_a", "a", 7, {2})
      .add_parameter("p_b", "b", 7, {2})
      .add_parameter("p_c", "c", 7, {2})
      .add_output("p_a");
  Program program = read_ok(text.text());
  std::vector<std::byte> ones(8, std::byte{1}), twos(8, std::byte{2});
  program.weights[0].source = *literal(ones, DType::kF32, {2});
  program.weights[1].source = *literal(ones, DType::kF32, {2});
  program.weights[2].source = *literal(twos, DType::kF32, {2});
  Pt2DocumentOptions options;
  options.root = "m";
  Result<Pt2Document> document = build_pt2_document(program, options);
  ASSERT_TRUE(document.has_value()) << to_text(document.error());
  size_t tensors = 0;
  for (const Pt2Document::Entry& entry : document->entries) tensors += entry.source != nullptr;
  EXPECT_EQ(tensors, 2u);
}

}  // namespace
}  // namespace argosy
