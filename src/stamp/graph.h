#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/json.h"

namespace argosy::stamp {

/// What stamping does not cover is no fault of the graph: it has to be traced whole.
inline tl::unexpected<Error> refuse_to_stamp(std::string why) {
  return fail(ErrorCode::kUnsupportedFeature, std::move(why));
}

/// No value, node or storage.
inline constexpr uint32_t kNone = UINT32_MAX;

/// Stands for the name of a value in Node::text and the like; for the node's own name; for the path of a weight. No
/// JSON text holds these bytes as they are.
inline constexpr char kMention = '\x01', kOwnName = '\x02', kOwnPath = '\x03';

/// Where a node belongs: an element of a stack of layers, or none.
struct Home {
  uint32_t stack = kNone;
  uint32_t layer = 0;

  bool is_glue() const { return stack == kNone; }
  friend bool operator==(const Home&, const Home&) = default;
  friend auto operator<=>(const Home&, const Home&) = default;
};

struct Location {
  std::string file, module, class_name;
  int64_t line = 0, call = 0;
  friend bool operator==(const Location&, const Location&) = default;
};

/// What a graph computes or is given. Sizes are values too, but equal ones are one.
struct Value {
  std::string name;
  std::string table;       // of the graph's JSON that describes it: "tensor_values", ...; empty: in none
  std::string meta;        // its entry there, as JSON
  std::string size;        // the expression of a size that follows from those of inputs; else empty
  uint32_t node = kNone;   // that computes it; none: an input, or a size
  uint32_t result = 0;     // which one of the node's
  uint32_t input = kNone;  // which input it is
  uint32_t root = kNone;   // the first value in the same storage; none: not known
};

struct Node {
  std::string name;
  std::string text;                // its JSON with marks for names
  std::vector<uint32_t> mentions;  // the values of the marks, results among them
  std::vector<uint32_t> results;
  Location location;
  bool has_location = false;
  Home home;
};

struct Input {
  std::string kind;    // "parameter", "buffer", "tensor_constant", "user_input"
  std::string path;    // dotted: of a weight its name, of a number that the trace lifted "<module>.lifted_tensor.#<n>"
  std::string stored;  // the name of a weight as the file has it
  std::string text, spec;  // JSON with marks: in the list of inputs, in the signature
  uint32_t value = kNone;
};

struct Output {
  std::string path;
  std::string text, spec;
  uint32_t value = kNone;  // none: a constant
};

/// A serialised graph as plain data: what layers have in common can be compared as text.
struct Graph {
  std::vector<Value> values;
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::map<std::string, Node> sizes;  // how to compute sizes from inputs, by expression
  std::vector<Output> outputs;

  uint32_t size_value(std::string_view expression) const;  // none: not computed
};

/// "<module>.lifted_tensor_" if that is the name of a number that the trace lifted: torch numbers them as they come,
/// whichever module they are of. Else empty.
std::string lifted_prefix(std::string_view stored);

/// How callers know the inputs and outputs of a graph.
struct Paths {
  std::map<std::string, std::string> inputs;  // by name in the graph
  std::vector<std::string> outputs;           // in order
};

/// Refuses what stamping does not cover (sub-graphs, outputs that are mutations) with kUnsupportedFeature.
Result<Graph> read_graph(JsonView graph, JsonView companion, const Paths& paths);

/// The graph and its companion as JSON; what is not the graph's own is copied from `pattern`, which it was made from.
/// `modules` are the paths of the modules that the graph calls, in order.
struct GraphTexts {
  std::string graph, companion;
};
Result<GraphTexts> write_graph(const Graph& graph, JsonView pattern, const std::vector<std::string>& modules);

/// The names of modules in a serialised graph, without the root's empty one.
std::vector<std::string> called_modules(JsonView graph);

/// Both graphs in the same words: nothing is left of names, of where sizes are computed, and of symbols but their
/// order. Empty if they are equal, else the first line that differs.
std::string difference(const Graph& one, const Graph& other);

}  // namespace argosy::stamp
