#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "ir/rewriter.h"
#include "passes/aten_builder.h"

namespace argosy {

/// Null if there is none of that name.
const InputSpec* find_input(const Component& component, std::string_view name);
/// Only the user outputs of these names stay, in this order.
Status keep_outputs(Component& component, const std::vector<std::string>& names);
/// A symbol that the component does not have yet, of that name if it is free.
SymExpr new_symbol(Component& component, const std::string& name, SymAssumptions assumptions);
/// Drops what is known of the trace beside its graphs (guards, sample inputs, texts of formats): it is no longer true.
void forget_trace(Component& component);

/// A component's entry graph while its border is changed. Problems throw Refused; so do functions that are given a name
/// if there is no such input or output.
class Border {
 public:
  Border(Program& program, Component& component);
  Border(const Border&) = delete;

  Program& program;
  Component& component;
  Rewriter rewriter;

  const Graph& graph() const { return rewriter.graph(); }
  // There is one builder; each call below moves the place where it adds nodes.
  /// Before everything that was in the graph, after what was added there before.
  AtenBuilder& top();
  AtenBuilder& before(NodeId node);
  AtenBuilder& at_end();
  /// For looking only; nodes are added by the functions above.
  const AtenBuilder& look() const { return f_; }
  const TensorType& type(ValueId tensor) const { return f_.type(tensor); }

  // ---- inputs; all are tensors
  ValueId input(std::string_view name) const;
  bool has_input(std::string_view name) const;
  /// All of them, for sizes that one of them has.
  std::vector<ValueId> inputs() const;
  ValueId add_input(std::string name, DType dtype, Sizes shape);
  /// Changes the type in which callers give the input; returns the new value. The caller must replace the old one.
  ValueId retype_input(std::string_view name, DType dtype, Sizes shape);
  /// Takes the input away from callers; returns its value, which the caller must replace.
  ValueId take_input(std::string_view name);
  /// Replaces an input that callers no longer see by another tensor. Sizes that only the input had become those of that
  /// tensor.
  void replace(ValueId input, ValueId with);

  // ---- outputs
  /// The place among the outputs.
  uint32_t output(std::string_view name) const;
  ValueId output_tensor(std::string_view name) const;
  void add_output(std::string name, ValueId value);
  void drop_output(std::string_view name);

  /// A size of which nothing is known; `name` is what callers call it.
  SymExpr new_size(std::string name = {});
  /// The size that callers know by a name; a new one if there is none.
  SymExpr named_size(const std::string& name);
  /// The number that a size is known to be; Refused if it is not known. `what` is named in the message.
  static int64_t fixed(SymExpr size, std::string_view what);

  [[noreturn]] static void refuse(std::string why, std::string hint = {});
  /// Refused if an input or output has that name already.
  void check_free(std::string_view kind, std::string_view from, std::string_view to) const;

  /// Adds nodes where they were added last.
  AtenBuilder& here() { return f_; }

 private:
  InputSpec& spec(std::string_view name) const;
  bool has_size(SymExpr size) const;

  RuleContext context_;
  AtenBuilder f_;
  const size_t old_nodes_;  // those with smaller numbers were in the graph
};

}  // namespace argosy
