#include "stamp/stamp.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace argosy::stamp {
namespace {

/// What a layer of the test's model does to the value before it.
struct Layer {
  uint32_t kind = 0;
  std::string op = "relu";
  int steps = 1;
};

/// Texts as a capture has them: `x`, through each layer, which multiplies by its weight, and a sum with the input.
struct Texts {
  std::string graph, companion;
  Paths paths;
};

std::string tensor(std::string_view name) { return format(R"({{"as_tensor":{{"name":"{}"}}}})", name); }

Texts model(const std::vector<Layer>& layers) {
  std::string inputs, specs, nodes, values, places, locations, storages;
  int storage = 0;
  auto add = [](std::string& list, const std::string& entry) { list += (list.empty() ? "" : ",") + entry; };
  auto value = [&](const std::string& name) {
    add(values, format(R"("{}":{{"dtype":7,"sizes":[{{"as_int":4}}]}})", name));
    add(storages, format(R"("{}":{})", name, storage++));
  };
  auto node = [&](const std::string& name, const std::string& op, const std::vector<std::string>& reads,
                  const std::string& module) {
    std::string arguments;
    for (const std::string& each : reads) add(arguments, format(R"({{"name":"a","arg":{},"kind":1}})", tensor(each)));
    add(nodes, format(R"({{"target":"{}","inputs":[{}],"outputs":[{}],"metadata":{{}},"name":"{}"}})", op, arguments,
                      tensor(name), name));
    add(places, std::to_string(places.empty() ? 0 : std::count(places.begin(), places.end(), ',') + 1));
    add(locations, format(R"({{"file":"m.py","line":1,"module":"{}","class":"M","call":0}})", module));
    value(name);
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    std::string name = format("p_layers_{}_weight", i);
    add(inputs, tensor(name));
    add(specs, format(R"({{"parameter":{{"arg":{{"name":"{}"}},"parameter_name":"layers.{}.weight"}}}})", name, i));
    value(name);
  }
  add(inputs, tensor("x"));
  add(specs, format(R"({{"user_input":{{"arg":{}}}}})", tensor("x")));
  value("x");
  std::string last = "x";
  for (size_t i = 0; i < layers.size(); ++i) {
    std::string module = format("layers.{}", i), product = format("mul_{}", i + 1);
    node(product, "mul", {last, format("p_layers_{}_weight", i)}, module);
    last = product;
    for (int step = 0; step < layers[i].steps; ++step) {
      std::string name = format("{}_{}_{}", layers[i].op, i, step);
      node(name, layers[i].op, {last}, module);
      last = name;
    }
  }
  node("sum", "add", {last, "x"}, "");
  constexpr const char* kSpec =
      R"("[1, {\"type\": \"builtins.dict\", \"context\": \"[\\\"x\\\"]\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}]")";
  Texts texts;
  texts.graph = format(
      R"({{"graph_module":{{"graph":{{"inputs":[{}],"outputs":[{}],"nodes":[{}],"tensor_values":{{{}}},"sym_int_values":{{}}}},)"
      R"("signature":{{"input_specs":[{}],"output_specs":[{{"user_output":{{"arg":{}}}}}]}},)"
      R"("module_call_graph":[{{"fqn":"","signature":{{"in_spec":{},"out_spec":{},"forward_arg_names":["x"]}}}},)"
      R"({{"fqn":"layers.0","signature":null}},{{"fqn":"layers.1","signature":null}}]}},"schema_version":{{"major":8}}}})",
      inputs, tensor("sum"), nodes, values, specs, tensor("sum"), kSpec, kSpec);
  texts.companion = format(R"({{"locations":[{}],"nodes":[{}],"storage_count":{},"storages":{{{}}},"subgraphs":{{}}}})",
                           locations, places, storage, storages);
  texts.paths.outputs = {"sum"};
  return texts;
}

Result<Graph> read(const Texts& texts) {
  ARGOSY_TRY(JsonDocument graph, JsonDocument::parse(texts.graph, "graph"));
  ARGOSY_TRY(JsonDocument companion, JsonDocument::parse(texts.companion, "companion"));
  return read_graph(graph.root(), companion.root(), texts.paths);
}

std::vector<Layer> alike(size_t count) { return std::vector<Layer>(count); }

std::vector<uint32_t> kinds_of(const std::vector<Layer>& layers) {
  std::vector<uint32_t> kinds;
  for (const Layer& layer : layers) kinds.push_back(layer.kind);
  return kinds;
}

Result<Graph> stamped(const std::vector<Layer>& few, const std::vector<Layer>& many) {
  ARGOSY_TRY(Graph pattern, read(model(few)));
  std::vector<Stack> stacks = {{"layers", kinds_of(few), kinds_of(many)}};
  ARGOSY_TRY(Layers layers, Layers::find(pattern, stacks));
  ARGOSY_TRY(Stamped made, stamp(pattern, layers, stacks, {}));
  return std::move(made.graph);
}

std::string refusal(const std::vector<Layer>& few, const std::vector<Layer>& many) {
  Result<Graph> made = stamped(few, many);
  EXPECT_FALSE(made);
  if (made) return {};
  EXPECT_EQ(made.error().code, ErrorCode::kUnsupportedFeature);
  return made.error().message;
}

TEST(Stamp, LayersThatAreAlikeAreRepeated) {
  Graph made = stamped(alike(3), alike(9)).value();
  EXPECT_EQ(difference(made, read(model(alike(9))).value()), "");
  EXPECT_NE(difference(made, read(model(alike(8))).value()), "");
}

TEST(Stamp, EveryKindIsRepeatedWhereItIsWanted) {
  Layer a, b{.kind = 1, .op = "tanh", .steps = 2};
  Graph made = stamped({a, b, a, b, a}, {a, a, b, b, a, b, a, a}).value();
  EXPECT_EQ(difference(made, read(model({a, a, b, b, a, b, a, a})).value()), "");
}

TEST(Stamp, WhatIsWrittenReadsBackAsTheSameGraph) {
  Texts texts = model(alike(2));
  Graph made = stamped(alike(2), alike(5)).value();
  JsonDocument pattern = JsonDocument::parse(texts.graph, "graph").value();
  GraphTexts written = write_graph(made, pattern.root(), {"layers.0", "layers.4"}).value();
  Texts again{written.graph, written.companion, texts.paths};
  EXPECT_EQ(difference(read(again).value(), read(model(alike(5))).value()), "");
  JsonDocument document = JsonDocument::parse(written.graph, "graph").value();
  EXPECT_EQ(called_modules(document.root()), (std::vector<std::string>{"layers.0", "layers.4"}));
}

TEST(Stamp, RejectsAKindThatIsNotThere) {
  EXPECT_EQ(refusal(alike(3), {Layer{}, Layer{.kind = 1}, Layer{}}), "no traced layer is like layers.1");
}

TEST(Stamp, RejectsLayersOfAKindThatDiffer) {
  EXPECT_NE(refusal({Layer{}, Layer{}, Layer{.op = "tanh"}}, alike(6)).find("compute different things"),
            std::string::npos);
  EXPECT_NE(refusal({Layer{}, Layer{}, Layer{.steps = 3}}, alike(6)).find("have 2 and 4 nodes"), std::string::npos);
}

TEST(Stamp, RejectsSubgraphs) {
  Texts texts = model(alike(3));
  texts.companion.replace(texts.companion.find("\"subgraphs\":{}"), 14, "\"subgraphs\":{\"scan\":{}}");
  Result<Graph> graph = read(texts);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message, "the graph has sub-graphs");
}

TEST(Stamp, RejectsLayersThatRunInAnotherOrder) {
  Texts texts = model(alike(3));
  for (const char* name : {"\"layers.0\"", "\"layers.2\""}) {
    for (size_t at = texts.companion.find(name); at != std::string::npos; at = texts.companion.find(name, at + 1))
      texts.companion[at + 8] = texts.companion[at + 8] == '0' ? '9' : '0';
  }
  for (size_t at = texts.companion.find("layers.9"); at != std::string::npos; at = texts.companion.find("layers.9"))
    texts.companion[at + 7] = '2';
  Graph graph = read(texts).value();
  std::vector<Stack> stacks = {{"layers", {0, 0, 0}, {0, 0, 0, 0}}};
  Result<Layers> layers = Layers::find(graph, stacks);
  ASSERT_FALSE(layers);
  EXPECT_NE(layers.error().message.find("do not run one after the other"), std::string::npos);
}

TEST(Stamp, NumbersThatATraceLiftedAreKnownByTheirName) {
  EXPECT_EQ(lifted_prefix("model.layers.3.lifted_tensor_12"), "model.layers.3.lifted_tensor_");
  EXPECT_EQ(lifted_prefix("lifted_tensor_0"), "lifted_tensor_");
  EXPECT_EQ(lifted_prefix("model.unlifted_tensor_0"), "");
  EXPECT_EQ(lifted_prefix("model.lifted_tensor_x"), "");
}

}  // namespace
}  // namespace argosy::stamp
