#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "stamp/stamp.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace argosy {
namespace {

/// A graph with its companion, as texts, and how callers know its inputs and outputs.
struct GraphDocument {
  JsonDocument graph, companion;
  stamp::Paths paths;

  static Result<GraphDocument> parse(std::string_view graph, std::string_view companion, std::string_view interface) {
    ARGOSY_TRY(JsonDocument parsed, JsonDocument::parse(graph, "graph"));
    ARGOSY_TRY(JsonDocument beside, JsonDocument::parse(companion, "companion"));
    ARGOSY_TRY(JsonDocument described, JsonDocument::parse(interface, "interface"));
    stamp::Paths paths;
    for (JsonView input : described.root().find("inputs").items()) {
      std::string path = text_at(input, "path");
      if (!path.empty()) paths.inputs.emplace(text_at(input, "name"), std::move(path));
    }
    for (JsonView output : described.root().find("outputs").items()) paths.outputs.push_back(text_at(output, "name"));
    return GraphDocument{std::move(parsed), std::move(beside), std::move(paths)};
  }

  Result<stamp::Graph> read() const { return stamp::read_graph(graph.root(), companion.root(), paths); }
};

/// Prefix of a stack, kinds of its layers, and those of the layers that are wanted.
using StackArgument = std::tuple<std::string, std::vector<uint32_t>, std::vector<uint32_t>>;
/// Name in the graph, path, and both of the input of the pattern that it is like.
using InputPart = std::tuple<std::string, std::string, std::string, std::string>;
/// Path, and that of the output of the pattern that it is like.
using OutputPart = std::tuple<std::string, std::string>;
using StampedParts = std::tuple<std::string, std::string, std::vector<InputPart>, std::vector<OutputPart>>;

Result<StampedParts> stamp_document(const GraphDocument& document, const std::vector<StackArgument>& arguments) {
  ARGOSY_TRY(stamp::Graph pattern, document.read());
  std::vector<stamp::Stack> stacks;
  for (const auto& [prefix, kinds, wanted] : arguments) stacks.push_back({prefix, kinds, wanted});
  ARGOSY_TRY(stamp::Layers layers, stamp::Layers::find(pattern, stacks));
  ARGOSY_TRY(stamp::Stamped stamped,
             stamp::stamp(pattern, layers, stacks, stamp::called_modules(document.graph.root())));
  ARGOSY_TRY(stamp::GraphTexts texts, stamp::write_graph(stamped.graph, document.graph.root(), stamped.modules));
  std::vector<InputPart> inputs;
  std::vector<OutputPart> outputs;
  for (size_t i = 0; i < stamped.inputs.size(); ++i) {
    const stamp::Input &input = stamped.graph.inputs[i], &like = pattern.inputs[stamped.inputs[i]];
    auto known_as = [](const stamp::Input& each) { return each.stored.empty() ? each.path : each.stored; };
    inputs.emplace_back(stamped.graph.values[input.value].name, known_as(input), pattern.values[like.value].name,
                        known_as(like));
  }
  for (size_t i = 0; i < stamped.outputs.size(); ++i)
    outputs.emplace_back(stamped.graph.outputs[i].path, pattern.outputs[stamped.outputs[i]].path);
  return StampedParts{std::move(texts.graph), std::move(texts.companion), std::move(inputs), std::move(outputs)};
}

StampedParts stamp_graph(std::string_view graph, std::string_view companion, std::string_view interface,
                         const std::vector<StackArgument>& stacks) {
  auto result = [&]() -> Result<StampedParts> {
    nb::gil_scoped_release release;
    ARGOSY_TRY(GraphDocument document, GraphDocument::parse(graph, companion, interface));
    return stamp_document(document, stacks);
  }();
  return unwrap(std::move(result));
}

using GraphTexts = std::tuple<std::string_view, std::string_view, std::string_view>;

std::string graph_difference(const GraphTexts& one, const GraphTexts& other) {
  auto read = [](const GraphTexts& texts) -> Result<stamp::Graph> {
    ARGOSY_TRY(GraphDocument document,
               GraphDocument::parse(std::get<0>(texts), std::get<1>(texts), std::get<2>(texts)));
    return document.read();
  };
  auto result = [&]() -> Result<std::string> {
    nb::gil_scoped_release release;
    ARGOSY_TRY(stamp::Graph a, read(one));
    ARGOSY_TRY(stamp::Graph b, read(other));
    return stamp::difference(a, b);
  }();
  return unwrap(std::move(result));
}

}  // namespace

void bind_stamp(nb::module_& module) {
  module.def("stamp_graph", &stamp_graph, "graph"_a, "companion"_a, "interface"_a, "stacks"_a,
             "A component's graph at other depths: its JSON, its companion, inputs and outputs. ``stacks`` has, for "
             "each list\n"
             "of layers, its path, the kinds of its layers and those of the layers that are wanted.");
  module.def(
      "graph_difference", &graph_difference, "one"_a, "other"_a,
      "The first difference of two graphs, each given as JSON, companion and interface; empty if there is none but\n"
      "names and where sizes are computed.");
}

}  // namespace argosy
