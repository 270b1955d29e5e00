#include "inspect/graph_report.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "inspect/graph_testing.h"

namespace argosy {
namespace {

// ---- parts ----

TEST(GraphParts, follow_the_names_of_nodes) {
  GraphMaker maker;
  maker.node("Gather", {"ids"}, {"a"}, "model.embed/Gather");
  for (std::string layer : {"0", "1", "2"}) {
    maker.node("MatMul", {"a", "w" + layer}, {"b" + layer}, format("model.layers.{}.attn/MatMul", layer));
    maker.node("Add", {"b" + layer, "a"}, {"c" + layer}, format("model.layers.{}/Add", layer));
    maker.weight("w" + layer, {4, layer == "2" ? 8 : 4});
  }
  maker.node("Neg", {"a"}, {"z"}, "Neg_7");
  std::vector<GraphPart> parts = graph_parts(maker.done());
  ASSERT_EQ(parts.size(), 10u);  // all, model, embed, layers, and of each layer two
  EXPECT_EQ(parts[0].nodes, 8u);
  ASSERT_EQ(parts[0].items.size(), 2u);
  EXPECT_TRUE(parts[0].items[0].is_part);
  EXPECT_FALSE(parts[0].items[1].is_part);  // a node without a place
  EXPECT_EQ(parts[1].name, "model");
  EXPECT_EQ(parts[1].nodes, 7u);
  EXPECT_EQ(path_of(parts, 5), "model.layers.0.attn");
  EXPECT_EQ(path_of(parts, 0), "");
  EXPECT_TRUE(is_numbered(parts[4]));
  EXPECT_EQ(parts[4].contents, parts[6].contents);
  EXPECT_NE(parts[4].contents, parts[8].contents);  // its weight has another size
  std::vector<AlikeParts> alike = alike_parts(parts, 3);
  ASSERT_EQ(alike.size(), 2u);
  EXPECT_EQ(alike[0].numbers, "0 to 1");
  EXPECT_EQ(alike[1].parts, std::vector<uint32_t>{8});
  EXPECT_EQ(layers_of_parts(parts), (std::vector<uint32_t>{0, 0, 0, 0, 4, 4, 6, 6, 8, 8}));
}

TEST(GraphParts, names_of_other_exporters_have_slashes) {
  GraphMaker maker;
  maker.node("MatMul", {"a"}, {"b"}, "/model/layers.0/attn/MatMul");
  std::vector<GraphPart> parts = graph_parts(maker.done());
  EXPECT_EQ(path_of(parts, static_cast<uint32_t>(parts.size() - 1)), "model.layers.0.attn");
}

TEST(GraphParts, hostile_names_do_not_make_parts_without_end) {
  GraphMaker maker;
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a.";
  for (int i = 0; i < 5000; ++i) maker.node("Neg", {"a"}, {"b"}, format("{}.{}/x", i, deep));
  std::vector<GraphPart> parts = graph_parts(maker.done());
  EXPECT_LE(parts.size(), size_t{1} << 17);
  EXPECT_EQ(parts[0].nodes, 5000u);
  EXPECT_EQ(graph_parts(GraphMaker().node("Neg", {"a"}, {"b"}, "...///").done()).size(), 1u);
}

TEST(GraphParts, numbers_are_said_as_ranges) {
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_EQ(ranges_text({7}), "7");
  EXPECT_EQ(ranges_text({0, 1, 2, 3}), "0 to 3");
  EXPECT_EQ(ranges_text({0, 2, 3, 4, 9}), "0, 2 to 4 and 9");
  std::vector<uint64_t> even;
  for (uint64_t i = 0; i < 200; i += 2) even.push_back(i);
  EXPECT_EQ(ranges_text(even), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 88 more");
}

// ---- structures ----

/// softmax(q @ k + mask) @ v, the keys joined with a cache.
void add_attention(GraphMaker& maker, const std::string& layer, const std::string& past) {
  auto name = [&](const std::string& op) { return format("layers.{}.attn/{}", layer, op); };
  maker.node("MatMul", {"x", "wq"}, {"q" + layer}, name("MatMul"));
  maker.node("MatMul", {"x", "wk"}, {"k" + layer}, name("MatMul_1"));
  maker.node("Concat", {past, "k" + layer}, {"all" + layer}, name("Concat"), {{"axis", 2}});
  maker.node("Transpose", {"all" + layer}, {"t" + layer}, name("Transpose"));
  maker.node("MatMul", {"q" + layer, "t" + layer}, {"s" + layer}, name("MatMul_2"));
  maker.node("Add", {"s" + layer, "mask"}, {"m" + layer}, name("Add"));
  maker.node("Softmax", {"m" + layer}, {"p" + layer}, name("Softmax"));
  maker.node("Cast", {"p" + layer}, {"c" + layer}, name("Cast"));
  maker.node("MatMul", {"c" + layer, "k" + layer}, {"o" + layer}, name("MatMul_3"));
}

void add_decoder(GraphMaker& maker, int64_t opset, const std::string& width, const std::string& domain = "") {
  maker.opset("", opset).input("x", {"batch", "s", "16"}).input("past", {"batch", "2", "past_sequence", width});
  maker.weight("wq", {16, 16}).weight("wk", {16, 16});
  if (!domain.empty()) maker.opset(domain, 1).node(domain + ".BiasGelu", {"x"}, {"unused"});
  add_attention(maker, "0", "past");
}

FoundStructure only_found(const OnnxModel& model) {
  std::vector<FoundStructure> found = find_structures(model);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? FoundStructure{} : found[0];
}

std::string why_of(int64_t opset, const std::string& width, const std::string& domain = "") {
  GraphMaker maker;
  add_decoder(maker, opset, width, domain);
  return only_found(maker.done()).why;
}

TEST(FindStructures, attention_that_is_written_out_says_what_the_graph_shows) {
  GraphMaker plain;
  add_decoder(plain, 22, "8");
  FoundStructure found = only_found(plain.done());
  EXPECT_EQ(found.kind, StructureKind::kAttention);
  EXPECT_FALSE(found.is_op);
  EXPECT_EQ(found.what, "a Softmax between two products");
  EXPECT_EQ(found.why, "opset 22 has no op for it, 23 has; the file uses no ops of ONNX Runtime");
  EXPECT_EQ(why_of(23, "8"), "");
  EXPECT_EQ(why_of(22, "8", "com.microsoft"), "");
  EXPECT_EQ(why_of(22, "20", "com.microsoft"), "its heads are 20 wide, and GroupQueryAttention takes multiples of 8");
  GraphMaker read_twice;
  add_decoder(read_twice, 22, "8", "com.microsoft");
  read_twice.node("Shape", {"all0"}, {"shape"});
  EXPECT_NE(only_found(read_twice.done()).why.find("read by 2 nodes"), std::string::npos);
  GraphMaker no_cache;
  no_cache.opset("", 22).opset("com.microsoft", 1).weight("wq", {16, 16}).weight("wk", {16, 16});
  no_cache.node("com.microsoft.BiasGelu", {"x"}, {"before"});
  add_attention(no_cache, "0", "before");
  EXPECT_NE(only_found(no_cache.done()).why.find("not a cache joined with new ones"), std::string::npos);
}

TEST(FindStructures, a_router_is_no_attention) {
  GraphMaker maker;
  maker.weight("w", {4, 4});
  maker.node("MatMul", {"x", "w"}, {"scores"}).node("Softmax", {"scores"}, {"p"}).node("MatMul", {"p", "y"}, {"z"});
  EXPECT_TRUE(find_structures(maker.done()).empty());
}

TEST(FindStructures, ops_of_engines) {
  GraphMaker maker;
  maker.node("com.microsoft.GroupQueryAttention", {"q"}, {"a"}, "",
             {{"num_heads", 8}, {"kv_num_heads", 2}, {"local_window_size", 512}, {"do_rotary", 1}});
  maker.node("SimplifiedLayerNormalization", {"a"}, {"b"});
  maker.node("com.microsoft.SkipSimplifiedLayerNormalization", {"b"}, {"c"});
  maker.node("com.microsoft.RotaryEmbedding", {"c"}, {"d"});
  maker.node("Attention", {"d"}, {"e"});
  maker.node("other.GroupQueryAttention", {"e"}, {"f"});
  std::vector<FoundStructure> found = find_structures(maker.done());
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[0].what, "com.microsoft.GroupQueryAttention (8 heads, 2 of keys, a window of 512)");
  EXPECT_EQ(found[1].kind, StructureKind::kRotary);
  EXPECT_EQ(found[1].what, "inside com.microsoft.GroupQueryAttention (do_rotary)");
  EXPECT_EQ(found[2].kind, StructureKind::kNorm);
  EXPECT_EQ(found[4].kind, StructureKind::kRotary);
  EXPECT_EQ(found[5].what, "Attention");
  for (const FoundStructure& each : found) EXPECT_TRUE(each.is_op);
}

TEST(FindStructures, norms_that_are_written_out) {
  GraphMaker rms;
  rms.opset("", 22);
  rms.node("Mul", {"x", "x"}, {"square"})
      .node("ReduceMean", {"square"}, {"mean"})
      .node("Add", {"mean", "eps"}, {"sum"});
  rms.node("Sqrt", {"sum"}, {"root"}).node("Div", {"x", "root"}, {"y"});
  EXPECT_EQ(only_found(rms.done()).what, "an RMS norm in small ops");
  GraphMaker layer;
  layer.opset("", 22);
  layer.node("ReduceMean", {"x"}, {"middle"}).node("Sub", {"x", "middle"}, {"d"}).node("Pow", {"d", "two"}, {"square"});
  layer.node("ReduceMean", {"square"}, {"mean"}).node("Add", {"eps", "mean"}, {"sum"}).node("Sqrt", {"sum"}, {"root"});
  FoundStructure found = only_found(layer.done());
  EXPECT_EQ(found.what, "a layer norm in small ops");
  EXPECT_EQ(found.why, "");  // opset 22 has the op
  GraphMaker neither;
  neither.node("Mul", {"x", "y"}, {"square"}).node("ReduceMean", {"square"}, {"mean"});
  neither.node("Add", {"mean", "eps"}, {"sum"}).node("Sqrt", {"sum"}, {"root"});
  EXPECT_TRUE(find_structures(neither.done()).empty());
}

TEST(FindStructures, rotary_embeddings_that_are_written_out) {
  GraphMaker swapped;
  swapped.node("Slice", {"x", "half"}, {"b"}).node("Slice", {"x", "zero"}, {"a"}).node("Neg", {"b"}, {"n"});
  swapped.node("Concat", {"n", "a"}, {"turned"}).node("Mul", {"turned", "sin"}, {"p"}).node("Mul", {"x", "cos"}, {"q"});
  swapped.node("Add", {"q", "p"}, {"y"});
  EXPECT_EQ(only_found(swapped.done()).kind, StructureKind::kRotary);
  GraphMaker halves;
  halves.node("Mul", {"a", "cos"}, {"1"}).node("Mul", {"b", "sin"}, {"2"}).node("Sub", {"1", "2"}, {"first"});
  halves.node("Mul", {"b", "cos"}, {"3"}).node("Mul", {"a", "sin"}, {"4"}).node("Add", {"3", "4"}, {"second"});
  halves.node("Concat", {"first", "second"}, {"y"});
  EXPECT_EQ(only_found(halves.done()).kind, StructureKind::kRotary);
  GraphMaker other;  // the second sine belongs to something else
  other.node("Mul", {"a", "cos"}, {"1"}).node("Mul", {"b", "sin"}, {"2"}).node("Sub", {"1", "2"}, {"first"});
  other.node("Mul", {"b", "cos"}, {"3"}).node("Mul", {"a", "tan"}, {"4"}).node("Add", {"3", "4"}, {"second"});
  other.node("Concat", {"first", "second"}, {"y"});
  EXPECT_TRUE(find_structures(other.done()).empty());
}

TEST(FindStructures, circles_end) {
  GraphMaker maker;
  maker.node("Add", {"b", "b"}, {"a"}).node("Cast", {"a"}, {"b"}).node("MatMul", {"a", "b"}, {"c"});
  maker.node("Sqrt", {"b"}, {"d"}).node("Cast", {"e"}, {"e"}).node("Sqrt", {"e"}, {"f"});
  EXPECT_TRUE(find_structures(maker.done()).empty());
}

TEST(FoundInLayers, layers_in_which_the_same_was_found_are_one_row) {
  GraphMaker maker;
  for (int i = 0; i < 5; ++i) {
    maker.node("LayerNormalization", {"a"}, {format("b{}", i)}, format("model.layers.{}.norm/LayerNormalization", i));
    if (i == 3) maker.node("Attention", {"a"}, {"c"}, "model.layers.3.attn/Attention");
  }
  maker.node("LayerNormalization", {"a"}, {"d"}, "model.norm/LayerNormalization");
  GraphReport report = report_graph(maker.done());
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(report.layers[0].place, "model.layers 0 to 2 and 4");
  EXPECT_EQ(report.layers[0].layers, 4u);
  ASSERT_EQ(report.layers[0].found.size(), 1u);
  EXPECT_EQ(report.layers[0].found[0].count, 1u);
  EXPECT_EQ(report.layers[1].place, "model.layers 3");
  EXPECT_EQ(report.layers[1].found.size(), 2u);
  EXPECT_EQ(report.layers[2].place, "");
  EXPECT_EQ(report.layers[2].nodes, 1u);
}

// ---- caches ----

TEST(CacheStates, sizes_follow_from_dims_and_types) {
  GraphMaker maker;
  maker.input("ids", {"batch", "s"}, "i64").input("past_sequence_length", {}, "i64");
  for (std::string part : {"key", "value"}) {
    maker.input("past_key_values.0." + part, {"batch", "2", "past_sequence", "8"}, "f16");
    maker.output("present.0." + part, {"batch", "2", "total", "8"}, "f16");
    maker.node("Concat", {"past_key_values.0." + part, "new"}, {"present.0." + part});
  }
  maker.input("past_conv_3", {"batch", "16", "4"}).output("present_conv_3", {"batch", "16", "4"});
  maker.input("past_odd", {"batch*heads", "8", "n"});
  std::vector<CacheState> states = cache_states(maker.done());
  ASSERT_EQ(states.size(), 4u);
  EXPECT_EQ(states[0].bytes, 32u);
  EXPECT_EQ(states[0].dim, "past_sequence");
  EXPECT_EQ(states[0].joined_by, "Concat");
  EXPECT_EQ(states[2].output, 2u);
  EXPECT_EQ(states[2].bytes, 256u);
  EXPECT_EQ(states[2].dim, "");
  EXPECT_EQ(states[2].joined_by, "");
  EXPECT_FALSE(states[3].bytes);
  EXPECT_FALSE(states[3].output);
  std::vector<CacheTotal> totals = cache_totals(states);
  ASSERT_EQ(totals.size(), 3u);
  EXPECT_EQ(totals[0].dim, "past_sequence");
  EXPECT_EQ(totals[0].states, 2u);
  EXPECT_EQ(totals[0].bytes_at(1024), 65536u);
  EXPECT_EQ(totals[1].bytes_at(1024), 256u);
  EXPECT_EQ(totals[2].states, 1u);
  EXPECT_FALSE(totals[2].bytes_at(1024));
}

TEST(CacheStates, sizes_that_inputs_leave_open_are_those_of_outputs) {
  GraphMaker maker;
  maker.input("past.0", {"batch", "any", "past", "any_1"}).output("present.0", {"batch", "4", "past + s", "16"});
  std::vector<CacheState> states = cache_states(maker.done());
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].bytes, 256u);
  EXPECT_EQ(states[0].dim, "past + s");
}

TEST(CacheStates, sizes_that_overflow_are_not_known) {
  GraphMaker maker;
  maker.input("past.0", {"batch", "9223372036854775807", "n"})
      .input("past.1", {"batch", "n", "1000000000000000000"}, "u8");
  maker.output("present_only", {"batch", "n", "4"});
  std::vector<CacheState> states = cache_states(maker.done());
  ASSERT_EQ(states.size(), 3u);
  EXPECT_FALSE(states[0].bytes);
  EXPECT_EQ(states[1].bytes, 1000000000000000000u);
  EXPECT_FALSE(states[2].input);
  EXPECT_FALSE(cache_totals({states[1]})[0].bytes_at(4096));
}

}  // namespace
}  // namespace argosy
