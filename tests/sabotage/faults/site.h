#pragma once

#include <functional>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

#include "ir/rewriter.h"
#include "passes/aten_builder.h"

namespace argosy::sabotage {

/// A node that a fault looks at, and what it may do there.
class Site {
 public:
  Site(Program& program, Component& component, Rewriter& rewriter, NodeId node)
      : context_{program, component, rewriter, node} {}

  const Graph& graph() const { return context_.rewriter.graph(); }
  const Node& node() const { return graph()[context_.node]; }
  NodeId id() const { return context_.node; }
  Program& program() const { return context_.program; }
  Component& component() const { return context_.component; }
  Rewriter& rewriter() const { return context_.rewriter; }

  std::string_view op() const { return program().schemas[node().op].name; }
  bool is(std::initializer_list<std::string_view> ops) const;
  /// Null if the op has no argument of that name.
  const Argument* argument(std::string_view name) const;
  /// An argument that is a number, as a double; NaN if it is none.
  double number(std::string_view name) const;
  /// Invalid if the argument is no tensor.
  ValueId tensor(std::string_view name) const;
  ValueId result() const { return node().outputs[0]; }
  const TensorType* type(ValueId value) const { return value.is_valid() ? graph()[value].tensor() : nullptr; }

  /// The place where a value comes from; `op` of an input or weight is "".
  Site producer_of(ValueId value) const;
  bool is_made_by(ValueId value, std::initializer_list<std::string_view> ops) const;
  /// The same without casts and copies in between.
  ValueId origin(ValueId value) const;
  /// The weight that a value is, casts aside; null if it is none.
  Weight* weight(ValueId value) const;

  void set(std::string_view argument, Argument value) const;
  /// A node before (or after) this one.
  Result<ValueId> before(std::string_view schema, std::vector<AtenBuilder::Named> arguments, ValueType type);
  Result<ValueId> after(std::string_view schema, std::vector<AtenBuilder::Named> arguments, ValueType type);

 private:
  RuleContext context_;
};

using Spoil = std::function<Result<bool>(Site&)>;
/// Visits nodes of all components in order, up to the first where `spoil` says true.
Result<bool> at_first(Program& program, const Spoil& spoil);
/// Visits all of them. True: one was spoilt.
Result<bool> at_each(Program& program, const Spoil& spoil);
/// The last place of which `fits` says true is spoilt.
Result<bool> at_last(Program& program, const std::function<bool(Site&)>& fits, const Spoil& spoil);

/// The tensor without strides.
TensorType fresh(const TensorType& type);
/// An argument of the same alternative with another number.
Argument with_number(const Argument& old, double number);

/// Those uses of a value are of another one, in lists too. The graph's outputs stay.
void redirect(Rewriter& rewriter, const std::vector<Use>& uses, ValueId old_value, ValueId new_value);

/// Values behind the first are in front of it, along `dim`: the last stands first.
Result<ValueId> emit_shifted(Site& site, ValueId value, int64_t dim);

}  // namespace argosy::sabotage
