#include "frontends/capture/capture.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "base/text.h"
#include "frontends/capture/ties.h"
#include "frontends/read_program.h"
#include "frontends/zip_testing.h"
#include "io/safetensors_writer.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace argosy {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(ARGOSY_TESTS) / "capture" / "version_1.capture";

Program golden() {
  Result<Program> program = read_program(kGolden, {});
  EXPECT_TRUE(program.has_value()) << (program ? "" : to_text(program.error()));
  return program ? *std::move(program) : Program{};
}

std::string error_after(const std::function<void(ZipEntries&)>& change) {
  ZipEntries entries = read_zip(kGolden);
  change(entries);
  std::filesystem::path path = test_file(".capture");
  write_zip(path, entries);
  Result<Program> program = read_program(path, {});
  std::filesystem::remove(path);
  EXPECT_FALSE(program.has_value());
  return program ? std::string() : program.error().message;
}

TEST(Capture, the_golden_file_of_version_1_is_read) {
  Program program = golden();
  ASSERT_EQ(program.components.size(), 2u);
  EXPECT_EQ(program.components[0].name, "encoder");
  EXPECT_EQ(program.components[1].name, "decoder");
  EXPECT_EQ(program.attributes.at("capture.model_class"), "Golden");
  EXPECT_EQ(program.attributes.at("capture.configuration"), R"({"hidden_size":4,"vocab_size":16})");
  for (const Error& error : verify(program).errors) ADD_FAILURE() << to_text(error);
  Result<Program> parsed = parse(print(program));
  ASSERT_TRUE(parsed.has_value()) << to_text(parsed.error());
  EXPECT_EQ(difference(program, *parsed), std::nullopt);
}

TEST(Capture, dims_have_names_ranges_and_equalities) {
  Program program = golden();
  const Component& encoder = program.components[0];
  const Graph& graph = encoder.entry();
  ASSERT_EQ(encoder.inputs.size(), 2u);
  SymExpr tokens = graph[encoder.inputs[0].value].tensor()->shape[1];
  SymExpr mask = graph[encoder.inputs[1].value].tensor()->shape[1];
  EXPECT_EQ(encoder.symbols->prove_equal(tokens, mask), true);
  EXPECT_EQ(encoder.dim_names.at(std::string(tokens.symbol_name())), "sequence");
  EXPECT_EQ(encoder.symbols->range(tokens).max, 512);
  EXPECT_EQ(encoder.outputs[0].name, "hidden");
}

TEST(Capture, storages_tell_who_aliases_whom) {
  Program program = golden();
  const Component& decoder = program.components[1];
  const Graph& graph = decoder.entry();
  bool has_view = false;
  for (NodeId node : graph.nodes()) {
    if (program.schemas[graph[node].op].name != "aten.transpose.int") continue;
    has_view = true;
    EXPECT_EQ(graph[graph[node].outputs[0]].storage, graph[*graph.find("hidden")].storage);
  }
  EXPECT_TRUE(has_view);
  EXPECT_EQ(graph[*graph.find("copy_")].storage, graph[*graph.find("cache")].storage);
}

TEST(Capture, nodes_have_locations) {
  Program program = golden();
  const Graph& graph = program.components[0].entry();
  const ModelLocation& location = program.locations[graph[graph[*graph.find("embedding")].producer].location];
  EXPECT_EQ(location.module_path, "embedding");
  EXPECT_EQ(location.class_name, "Embedding");
  EXPECT_EQ(location.file, "make_golden.py");
  EXPECT_GT(location.line, 0);
}

TEST(Capture, constants_come_along_and_parameters_do_not) {
  Program program = golden();
  size_t with_bytes = 0;
  for (const Weight& weight : program.weights) {
    bool is_shape_only = weight.source->recipe().starts_with("shape_only(");
    with_bytes += !is_shape_only;
    EXPECT_EQ(is_shape_only, weight.kind == WeightKind::kParameter || weight.kind == WeightKind::kBuffer)
        << weight.name;
  }
  EXPECT_GE(with_bytes, 1u);
}

constexpr std::string_view kHidden = R"({"dims":["batch",4,"sequence"],"dtype":"f32","name":"hidden")";
constexpr std::string_view kCache = R"({"dims":["batch",4],"dtype":"f32","name":"cache")";

TEST(Capture, samples_have_the_sizes_of_the_graph_and_of_the_call) {
  ZipEntries entries = read_zip(kGolden);
  std::string& manifest = entry(entries, "capture.json");
  replace(manifest, kHidden, std::string(kHidden) + R"(,"sample":[2,9,3])");
  replace(manifest, kCache, std::string(kCache) + R"(,"sample":[2,9])");
  // The encoder's are integers, of which no values are stored: it gets none.
  replace(manifest, R"("dtype":"i64","name":"tokens")", R"("dtype":"i64","name":"tokens","sample":[2,3])");
  std::filesystem::path path = test_file(".capture");
  write_zip(path, entries);
  Program program = read_program(path, {}).value();
  EXPECT_TRUE(program.components[0].samples.empty());
  ASSERT_EQ(program.components[1].samples.size(), 2u);
  auto shape = program.components[1].samples.at("hidden")->shape();
  EXPECT_EQ(std::vector<int64_t>(shape.begin(), shape.end()), (std::vector<int64_t>{2, 4, 3}));
  std::filesystem::remove(path);
}

TEST(Capture, rejects_samples_that_contradict_the_graph) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), kHidden, std::string(kHidden) + R"(,"sample":[2,9])");
            }).find("not as many sizes as the input has"),
            std::string::npos);
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), kHidden, std::string(kHidden) + R"(,"sample":[2,9,-3])");
            }).find("a negative size"),
            std::string::npos);
}

TEST(Capture, rejects_other_formats_and_versions) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "\"version\":1", "\"version\":2");
            }).find("capture format 2 is not read, only 1"),
            std::string::npos);
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "argosy-capture", "other-capture");
            }).find("expected \"argosy-capture\""),
            std::string::npos);
}

TEST(Capture, rejects_missing_entries) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              entries.erase(entries.begin() + 2);
            }).find("no entry \"graphs/encoder.companion.json\""),
            std::string::npos);
}

TEST(Capture, rejects_components_of_one_name) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "\"name\":\"decoder\"", "\"name\":\"encoder\"");
            }).find("component \"encoder\" occurs twice"),
            std::string::npos);
}

TEST(Capture, rejects_interfaces_that_contradict_the_graph) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "\"dtype\":\"i64\"", "\"dtype\":\"i32\"");
            }).find("the graph has dtype i64"),
            std::string::npos);
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "[\"batch\",\"sequence\"]", "[\"batch\"]");
            }).find("the graph has 2 dims here"),
            std::string::npos);
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "\"name\":\"tokens\"", "\"name\":\"words\"");
            }).find("the graph has no input \"words\""),
            std::string::npos);
}

TEST(Capture, rejects_storages_out_of_range) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "graphs/encoder.companion.json"), "\"tokens\":", "\"tokens\":99");
            }).find("is out of range"),
            std::string::npos);
}

TEST(Capture, rejects_locations_out_of_range) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "graphs/encoder.companion.json"), "\"nodes\":[", "\"nodes\":[99,");
            }).find("location that does not exist"),
            std::string::npos);
}

TEST(Capture, rejects_unknown_ops) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              replace(entry(entries, "capture.json"), "aten::embedding(", "aten::embeddings(");
            }).find("no schema is known for op aten.embedding.default"),
            std::string::npos);
}

constexpr std::string_view kOwnOps =
    R"("onnx_ops":[{"op":"my.op.default","domain":"com.example","name":"Op","version":2}])";

/// The manifest with a list of own ops, changed.
void add_own_ops(ZipEntries& entries, std::string_view from = "", std::string_view to = "") {
  std::string list(kOwnOps);
  if (!from.empty()) replace(list, from, to);
  std::string& manifest = entry(entries, "capture.json");
  manifest.insert(manifest.find('{') + 1, list + ",");
}

TEST(Capture, ops_of_a_user_s_own_are_attributes_of_the_program) {
  ZipEntries entries = read_zip(kGolden);
  add_own_ops(entries);
  std::filesystem::path path = test_file(".capture");
  write_zip(path, entries);
  EXPECT_EQ(read_program(path, {}).value().attributes.at("onnx_op.my.op.default"), "com.example.Op 2");
  std::filesystem::remove(path);
}

TEST(Capture, rejects_own_ops_that_no_file_can_have) {
  auto error = [](std::string_view from, std::string_view to) {
    return error_after([&](ZipEntries& entries) { add_own_ops(entries, from, to); });
  };
  auto expect = [](const std::string& found, std::string_view text) {
    EXPECT_NE(found.find(text), std::string::npos) << found;
  };
  expect(error("[{", "3,\"other\":[{"), "onnx_ops: expected an array");
  expect(error("com.example", "ai.onnx"), "onnx_ops[0]: \"ai.onnx\" is no domain");
  expect(error("com.example", "a b"), "\"a b\" is no domain");
  expect(error("\"Op\"", "\"O.p\""), "\"O.p\" is no op of ONNX");
  expect(error(":2", ":0"), "0 is no version of a domain");
  expect(error("my.op.default", "aten.relu.default"), "\"aten.relu.default\" is PyTorch's");
  constexpr std::string_view kTwice = R"(},{"op":"my.op.default","domain":"com.example","name":"Op","version":2}])";
  expect(error("}]", kTwice), "op \"my.op.default\" occurs twice");
  constexpr std::string_view kOther = R"(},{"op":"my.op.b","domain":"com.example","name":"Op","version":3}])";
  expect(error("}]", kOther), "domain com.example has version 2 and 3 at once");
}

TEST(Capture, rejects_constants_of_another_shape) {
  EXPECT_NE(error_after([](ZipEntries& entries) {
              std::string& constants = entry(entries, "constants.safetensors");
              replace(constants, "\"shape\":[4]", "\"shape\":[2]");
              replace(constants, "\"dtype\":\"F32\"", "\"dtype\":\"F64\"");
            }).find("differ on dtype or shape of \"scale\""),
            std::string::npos);
}

/// A checkpoint with zeros for the program's missing weights, but for the one that `skip` names.
Result<Checkpoint> checkpoint_for(const Program& program, std::string_view skip) {
  std::filesystem::path path = test_file(".safetensors");
  std::vector<NamedSource> tensors;
  for (const Weight& weight : program.weights) {
    if (!weight.source->recipe().starts_with("shape_only(") || weight.name == skip) continue;
    size_t bytes = static_cast<size_t>(weight.source->bytes());
    ARGOSY_TRY(TensorSourcePtr zeros, literal(std::vector<std::byte>(bytes), weight.dtype, weight.shape));
    tensors.push_back({weight.name, std::move(zeros)});
  }
  ARGOSY_TRY(SafetensorsLayout layout, lay_out_safetensors(std::move(tensors)));
  ARGOSY_TRY(OutputFile file, OutputFile::create(path, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(write_safetensors(layout, file, 1 << 20));
  ARGOSY_TRY_STATUS(file.commit());
  return Checkpoint::open(path);
}

TEST(Attach, gives_weights_their_bytes) {
  Program program = golden();
  Result<Checkpoint> checkpoint = checkpoint_for(program, "");
  ASSERT_TRUE(checkpoint.has_value()) << to_text(checkpoint.error());
  Status status = attach(program, *checkpoint, nullptr);
  ASSERT_TRUE(status.has_value()) << to_text(status.error());
  for (const Weight& weight : program.weights) {
    EXPECT_FALSE(weight.source->recipe().starts_with("shape_only(")) << weight.name;
  }
}

TEST(Attach, keeps_what_the_capture_brings_where_the_checkpoint_lacks_it) {
  Program program = golden();
  TensorSourcePtr own = literal(std::vector<std::byte>(64), DType::kF32, {16}).value();
  for (Weight& weight : program.weights) {
    if (weight.name == "head.bias") weight.source = own;
  }
  Program other = program;
  ASSERT_TRUE(attach(program, *checkpoint_for(golden(), "head.bias"), nullptr).has_value());
  EXPECT_EQ(program[*program.find_weight("head.bias")].source, own);
  ASSERT_TRUE(attach(other, *checkpoint_for(golden(), ""), nullptr).has_value());
  EXPECT_NE(other[*other.find_weight("head.bias")].source, own);
}

TEST(Attach, rejects_checkpoints_that_lack_a_weight) {
  Program program = golden();
  Result<Checkpoint> checkpoint = checkpoint_for(program, "head.bias");
  ASSERT_TRUE(checkpoint.has_value());
  Status status = attach(program, *checkpoint, nullptr);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "the checkpoint has no tensor for \"head.bias\"");
  for (const Weight& weight : program.weights) {
    if (weight.kind != WeightKind::kParameter) continue;
    EXPECT_TRUE(weight.source->recipe().starts_with("shape_only("));
  }
}

TEST(Attach, rejects_other_shapes) {
  Program program = golden();
  Result<Checkpoint> checkpoint = checkpoint_for(program, "");
  ASSERT_TRUE(checkpoint.has_value());
  for (Weight& weight : program.weights) {
    if (weight.name == "head.bias") weight.shape = {17};
  }
  Status status = attach(program, *checkpoint, nullptr);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "weight \"head.bias\" has shape [17] in the program and [16] in the checkpoint");
}

// ---- Tied weights: a head that is tied to the embeddings, whose own name the graph does not use. ----

Program tied_program() {
  Program program =
      parse("weight @in: f32[2] parameter weight @head: f32[2] parameter = @in graph () { return }").value();
  program.attributes["capture.ties"] = R"([["in","shared"],["head","shared"]])";
  return program;
}

Checkpoint checkpoint_of(const std::vector<std::pair<std::string, float>>& values) {
  std::filesystem::path path = test_file(".safetensors");
  std::vector<NamedSource> tensors;
  for (const auto& [name, value] : values) {
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data() + 4, &value, 4);
    tensors.push_back({name, literal(std::move(bytes), DType::kF32, {2}).value()});
  }
  // Written apart, as whoever saves a model twice does: equal recipes would share their bytes.
  std::string header = "{", data;
  for (const NamedSource& tensor : tensors) {
    header += format(R"({}"{}":{{"dtype":"F32","shape":[2],"data_offsets":[{},{}]}})", header.size() > 1 ? "," : "",
                     tensor.name, data.size(), data.size() + 8);
    EXPECT_TRUE(tensor.source
                    ->stream_to(
                        [&](std::span<const std::byte> bytes) -> Status {
                          data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                          return {};
                        },
                        1 << 16)
                    .has_value());
  }
  header += "}";
  uint64_t length = header.size();
  std::ofstream(path, std::ios::binary) << std::string(reinterpret_cast<const char*>(&length), 8) << header << data;
  return Checkpoint::open(path).value();
}

TEST(AttachTied, a_checkpoint_may_hold_any_one_of_the_names) {
  for (const char* name : {"in", "head", "shared"}) {
    Program program = tied_program();
    Checkpoint checkpoint = checkpoint_of({{name, 1.0F}});
    Status status = attach(program, checkpoint, nullptr);
    ASSERT_TRUE(status.has_value()) << to_text(status.error());
    EXPECT_EQ(program.weights[0].source->recipe(), program.weights[1].source->recipe());
    EXPECT_EQ(program.weights[1].tied_to, WeightId{0});
  }
}

TEST(AttachTied, equal_tensors_become_one) {
  Program program = tied_program();
  Checkpoint checkpoint = checkpoint_of({{"in", 1.0F}, {"head", 1.0F}});
  Diagnostics diagnostics;
  ASSERT_TRUE(attach(program, checkpoint, &diagnostics).has_value());
  EXPECT_EQ(program.weights[1].tied_to, WeightId{0});
  EXPECT_EQ(program.weights[0].source, program.weights[1].source);
  EXPECT_TRUE(diagnostics.notes.empty());
}

TEST(AttachTied, tensors_that_differ_stay_apart) {
  Program program = tied_program();
  Checkpoint checkpoint = checkpoint_of({{"in", 1.0F}, {"head", 2.0F}});
  Diagnostics diagnostics;
  ASSERT_TRUE(attach(program, checkpoint, &diagnostics).has_value());
  EXPECT_FALSE(program.weights[1].tied_to.is_valid());
  EXPECT_NE(program.weights[0].source->recipe(), program.weights[1].source->recipe());
  ASSERT_EQ(diagnostics.notes.size(), 1u);
  EXPECT_NE(diagnostics.notes[0].find("ties in and head, but the checkpoint holds both and they differ"),
            std::string::npos);
}

TEST(AttachTied, captures_tie_the_weights_that_they_name) {
  ZipEntries entries = read_zip(kGolden);
  std::string& manifest = entry(entries, "capture.json");
  Program plain = golden();
  std::vector<std::string> same;
  for (const Weight& weight : plain.weights) {
    bool fits = same.empty() || (plain[*plain.find_weight(same[0])].shape == weight.shape);
    if (weight.kind == WeightKind::kParameter && fits && same.size() < 2) same.push_back(weight.name);
  }
  ASSERT_EQ(same.size(), 2u);
  replace(manifest, "{\"components\"", format(R"({{"ties":[["{}","{}"]],"components")", same[1], same[0]));
  std::filesystem::path path = test_file(".capture");
  write_zip(path, entries);
  Result<Program> program = read_program(path, {});
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  EXPECT_EQ((*program)[*program->find_weight(same[1])].tied_to, program->find_weight(same[0]));
}

TEST(AttachTied, rejects_ties_that_are_no_pairs_of_names) {
  for (const char* text : {"{}", "[1]", R"([["a"]])", R"([["a",1]])", R"([["a","b"],["b","c"]])",
                           R"([["a","b"],["a","c"]])", R"([["a","a"]])"}) {
    EXPECT_FALSE(Ties::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace argosy
