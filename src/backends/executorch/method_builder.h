#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/executorch/data_table.h"
#include "backends/executorch/document.h"
#include "backends/executorch/method_values.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Makes a method of a component that is lowered: values, instructions, delegates, and where its memory is.
class MethodBuilder {
 public:
  MethodBuilder(const Program& program, const Component& component, DataTable& data, Diagnostics& diagnostics);
  Result<Method> build();

 private:
  /// A graph whose nodes are being added, and the values that its values have become.
  struct Scope {
    const Graph& graph;
    std::vector<ValueIndex> indices;
  };

  // ---- values, inputs and outputs: method_builder.cpp
  Status add_inputs(Scope& scope);
  Status add_outputs(Scope& scope);
  Result<ValueIndex> new_value(const ValueType& type);
  Result<Tensor> tensor_of(const TensorType& type) const;
  /// Of the entry graph or an inlined one: weights get their value when they are first used.
  Result<ValueIndex> index_of(Scope& scope, ValueId id);
  Result<ValueIndex> weight_index(WeightId id);
  /// Whether a tensor can be given to the caller as it is: computed by this call, and given only once.
  bool is_own_result(ValueIndex index, const std::set<ValueIndex>& given);
  Result<ValueIndex> state_index(const std::string& name);
  Result<ValueIndex> constant_output(const Argument& argument);

  // ---- nodes, each by a kernel, a delegate or nothing at all: method_nodes.cpp
  /// Every op that has no kernel is reported, not only the first one.
  Status add_nodes(Scope& scope);
  Status add_node(Scope& scope, NodeId id);
  Status add_number(Scope& scope, const Node& node);
  Status no_kernel(const OpSchema& schema) const;
  Result<std::vector<ValueIndex>> bound(Scope& scope, const Node& node, const OpSchema& schema,
                                        std::string_view kernel);
  Status add_kernel(Scope& scope, const Node& node, const OpSchema& schema);
  /// The result is the tensor that was written, unless the kernel has another result as well ("out" of
  /// llama::update_cache).
  Status add_in_place(Scope& scope, const Node& node, const OpSchema& schema, std::string_view kernel,
                      std::vector<ValueIndex> arguments);
  /// A reshape moves no bytes: the result has those of the operand. False: it has to be copied.
  Result<bool> add_alias(Scope& scope, const Node& node);
  /// The sizes of the result: numbers, one -1, or the argument of a reshape. nullopt: they would have to be computed.
  Result<std::optional<std::vector<ValueIndex>>> view_sizes(Scope& scope, const Node& node);
  Status add_delegate(Scope& scope, const Node& node);

  // ---- branches and loops: method_control_flow.cpp
  /// higher_order.cond(pred, true_graph, false_graph, operands): both graphs in a row, with jumps around them.
  Status add_branches(Scope& scope, const Node& node);
  Status inline_graph(Scope& scope, const Node& node, size_t argument, const std::vector<ValueIndex>& results);
  /// higher_order.scan(combine, init, xs, additional): its graph once, with a jump back. States have tensors of their
  /// own, which every step overwrites; results of steps are stacked.
  Status add_scan(Scope& scope, const Node& node);
  /// The kernel grows the first dim by itself, but wants the others to be right.
  void append_row(ValueIndex rows, ValueIndex row, ValueIndex step);
  Result<std::vector<ValueIndex>> operands_of(Scope& scope, const Argument& argument);
  void copy(ValueIndex from, ValueIndex to) { values_.call("aten::alias_copy.out", {from, to, to}); }

  const Program& program_;
  const Component& component_;
  DataTable& data_;
  Diagnostics& diagnostics_;
  Method method_;
  MethodValues values_;
  std::set<std::string> written_;
  std::map<uint32_t, ValueIndex> weights_;
  Status status_;
};

}  // namespace argosy::executorch
