#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/schema.h"
#include "tensor/source.h"
#include "tensor/sym.h"

namespace argosy {

enum class WeightKind : uint8_t { kParameter, kBuffer, kNonPersistentBuffer, kConstant };

/// A tensor that the graphs use and the file brings along, shared by all components.
struct Weight {
  std::string name;  // "model.layers.0.mlp.up_proj.weight", unique in the program
  WeightKind kind = WeightKind::kParameter;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  TensorSourcePtr source;  // never null; shape_only() where the bytes are elsewhere
  WeightId tied_to;        // valid: the same tensor as that (earlier) weight
};

/// One input that a caller of a component passes, in the caller's order.
struct InputSpec {
  std::string name;
  ValueId value;      // invalid: the trace fixed this input to `constant`
  Argument constant;  // None, bool, int64_t, double or string
  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

enum class OutputKind : uint8_t { kUser, kLoss, kBufferMutation, kParameterMutation, kInputMutation };

/// What output i of the entry graph is: one entry each, in order.
struct OutputSpec {
  OutputKind kind = OutputKind::kUser;
  std::string name;    // how callers see a user output; "" where the trace gives none
  std::string target;  // of a mutation: the name of the weight or input that gets this value
  friend bool operator==(const OutputSpec&, const OutputSpec&) = default;
};

/// What the trace assumed of the inputs beyond ranges, as text; `condition` where we understand it.
struct Guard {
  std::string text;
  SymExpr condition;
};

/// A dim of an input that callers might expect to vary, but the trace fixed.
struct SpecializedDim {
  std::string input;
  int dim = 0;
  int64_t value = 0;
  std::string reason;
  friend bool operator==(const SpecializedDim&, const SpecializedDim&) = default;
};

/// One graph that callers call, with the sub-graphs of its higher-order ops. graphs[0] is the entry.
struct Component {
  std::string name;
  std::shared_ptr<SymContext> symbols;  // shared by copies: append-only
  std::vector<Graph> graphs;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, std::string> dim_names;  // symbol -> what users call it: "s72" -> "batch"
  std::vector<Guard> guards;
  std::vector<SpecializedDim> specialized;
  std::map<std::string, std::string> attributes;  // texts that only readers and writers understand
  /// Arguments of a call that works, by name of the input; of all tensors or of none. Like the bytes of weights they
  /// are not part of the text form.
  std::map<std::string, TensorSourcePtr> samples;

  const Graph& entry() const { return graphs.front(); }
};

/// Interned locations: nodes hold ids.
class LocationTable {
 public:
  LocationId intern(ModelLocation location);
  const ModelLocation& operator[](LocationId id) const { return locations_[id.index]; }
  size_t size() const { return locations_.size(); }

 private:
  std::vector<ModelLocation> locations_;
  std::unordered_map<std::string, LocationId> by_key_;
};

/// All of one capture or archive: components over one weight table. A value: copies are independent (they share symbol
/// contexts and tensor sources).
struct Program {
  SchemaTable schemas;
  LocationTable locations;
  std::vector<Weight> weights;
  std::vector<Component> components;
  std::map<std::string, std::string> attributes;

  const Weight& operator[](WeightId id) const { return weights[id.index]; }
  std::optional<WeightId> find_weight(std::string_view name) const;  // O(weights): for messages and tests
  const Component* find_component(std::string_view name) const;
};

/// "%add_3 = aten.add.Tensor(…)": how messages name a node.
std::string describe(const Program& program, const Graph& graph, NodeId node);
/// The error, with the node and its place in the model as context.
Error at_node(Error error, const Program& program, const Graph& graph, NodeId node);

}  // namespace argosy
