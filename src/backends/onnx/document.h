#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "tensor/dtype.h"
#include "tensor/source.h"

/// One ONNX model as plain structs shaped like the file: translated from a component, optimised, then encoded.
namespace argosy::onnx {

/// A value of one Model, its sub-graphs included. Invalid: an optional input that is left out.
using Ref = Id<struct RefTag>;

/// A size: a number, a name that equal sizes share, or "" for one that nothing is known of.
using Dim = std::variant<int64_t, std::string>;

struct Value {
  std::string name;            // unique in the model; empty: to be named when the model is complete
  std::optional<DType> dtype;  // of its elements; nullopt: not known
  std::optional<std::vector<Dim>> shape;
  bool is_sequence = false;  // of tensors of that dtype
};

/// Constants are shared: equal ones are the same bytes, written once.
struct Initializer {
  Ref value;
  TensorSourcePtr tensor;  // weights, or literal() for constants of the translation
};

struct Attribute {
  std::string name;
  /// uint32_t: index of a sub-graph in Model::graphs. A tensor is a literal().
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
               TensorSourcePtr, uint32_t>
      value;
};

struct Node {
  std::string op;      // "MatMul"
  std::string domain;  // "" is ONNX's own
  std::vector<Ref> inputs, outputs;
  std::vector<Attribute> attributes;
  std::string name;  // where in the model it comes from; made unique when written
};

/// Nodes in topological order. Sub-graphs may use values of the graphs around them.
struct Graph {
  std::string name;
  std::vector<Ref> inputs, outputs;
  std::vector<Node> nodes;
};

struct Model {
  int opset = 22;
  int ir_version = 10;
  std::vector<Value> values;               // by Ref::index
  std::vector<Graph> graphs;               // [0] is the model's own, the others are sub-graphs
  std::vector<Initializer> initializers;   // of graphs[0]
  std::map<std::string, int64_t> domains;  // versions of those beside ONNX's own; 1 if left out
  std::map<std::string, std::string> metadata;

  const Value& operator[](Ref ref) const { return values[ref.index]; }
  Value& operator[](Ref ref) { return values[ref.index]; }
};

}  // namespace argosy::onnx
