#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/onnx/builder.h"
#include "backends/onnx/lowering.h"
#include "backends/onnx/sizes.h"
#include "backends/onnx/translations.h"
#include "ir/program.h"

namespace argosy::onnx {

/// Translates one component. Used by translate() alone, and by emitters of ops that have sub-graphs.
class Translator {
 public:
  Translator(const Program& program, const Component& component, const LoweringOptions& options,
             const Translations& translations, Diagnostics& diagnostics);

  /// The whole component. Problems are in the diagnostics.
  void run();
  Model take() { return builder_.take(); }

  const Program& program() const { return program_; }
  const Component& component() const { return component_; }
  const LoweringOptions& options() const { return options_; }
  const argosy::Graph& graph() const { return *graph_; }
  Builder& builder() { return builder_; }
  Sizes& sizes() { return sizes_; }

  /// A tensor as a value of the model.
  Ref tensor(ValueId value);
  /// A number as i64[1] (bool[1], f64[1]).
  Ref number(ValueId value);
  void set(ValueId value, Ref ref);

  /// Adds the nodes of a sub-graph to the open graph, with these values as its inputs. Returns its outputs.
  Refs run_subgraph(GraphId graph, const Refs& inputs);
  /// An output of a graph: a tensor, or a number as a tensor without dims.
  Ref output_value(const Argument& output);

 private:
  void add_inputs();
  void add_outputs();
  void run_nodes();
  void translate_node(NodeId node);
  /// How the node's op becomes ONNX; declined if there is no row. A user's row is preferred to ours.
  const Translation& translation_of(NodeId node) const;
  std::vector<Dim> dims_of(const TensorType& type) const;
  std::string dim_name(SymExpr size) const;

  const Program& program_;
  const Component& component_;
  const LoweringOptions& options_;
  const Translations& translations_;
  Diagnostics& diagnostics_;
  Builder builder_;
  Sizes sizes_;
  const argosy::Graph* graph_;
  std::vector<Ref> values_;          // of *graph_, by ValueId
  std::map<WeightId, Ref> weights_;  // those in use
};

}  // namespace argosy::onnx
