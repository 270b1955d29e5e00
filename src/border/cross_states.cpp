#include <algorithm>
#include <map>

#include "base/text.h"
#include "border/edits.h"

namespace argosy {
namespace {

[[noreturn]] void strange(const std::string& what) {
  AtenBuilder::refuse(format("what the decoder attends to depends on more than the encoder's hidden states: {}", what));
}

/// Copies nodes of one component's entry graph to where a rewriter of another component's graph inserts.
class Transplant {
 public:
  Transplant(Program& program, const Component& from, Component& to, Rewriter& rewriter)
      : from_(from), to_(to), rewriter_(rewriter), context_{program, to, rewriter, NodeId{}}, f_(context_) {}

  /// Declares a value of one graph to be a value of the other; their sizes are equal.
  void identify(ValueId from, ValueId to) {
    values_[from] = hidden_ = to;
    const Sizes &theirs = from_.entry()[from].tensor()->shape, &ours = f_.shape(to);
    if (theirs.size() != ours.size()) strange("hidden states of two ranks");
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (!theirs[i].as_integer()) sizes_[from_.symbols->to_text(theirs[i])] = i;
    }
  }

  ValueId copy(ValueId wanted) {
    std::vector<ValueId> waiting = {wanted};
    while (!waiting.empty()) {
      ValueId id = waiting.back();
      if (values_.contains(id)) {
        waiting.pop_back();
        continue;
      }
      const Value& value = from_.entry()[id];
      if (value.weight.is_valid()) {
        values_[id] = weight(value);
        continue;
      }
      if (!value.producer.is_valid()) strange(value.name);
      if (value.number() != nullptr && copy_size(id)) continue;
      const Node& node = from_.entry()[value.producer];
      bool is_ready = true;
      for (const Argument& argument : node.arguments) {
        if (argument.is<GraphId>()) strange("a higher-order op");
        for_each_value(argument, [&](ValueId operand, uint32_t) {
          if (!operand.is_valid() || values_.contains(operand)) return;
          waiting.push_back(operand);
          is_ready = false;
        });
      }
      if (is_ready) copy_node(node);
    }
    return values_[wanted];
  }

 private:
  ValueId weight(const Value& value) {
    for (ValueId id : rewriter_.graph().weights()) {
      if (rewriter_.graph()[id].weight == value.weight) return id;
    }
    return rewriter_.add_weight(copy_of(value), value.weight);
  }

  /// A number that is a size of the hidden states is taken from them.
  bool copy_size(ValueId id) {
    SymExpr expression = from_.entry()[id].number()->expression;
    auto found = expression.is_valid() ? sizes_.find(from_.symbols->to_text(expression)) : sizes_.end();
    if (found == sizes_.end()) return false;
    values_[id] = f_.size_node(hidden_, found->second);
    return true;
  }

  SymExpr translated(SymExpr expression) {
    if (!expression.is_valid()) return expression;
    if (auto number = expression.as_integer()) return to_.symbols->integer(*number);
    auto found = sizes_.find(from_.symbols->to_text(expression));
    if (found != sizes_.end()) return f_.shape(hidden_)[found->second];
    if (expression.kind() != SymKind::kAdd && expression.kind() != SymKind::kMul)
      strange(from_.symbols->to_text(expression));
    Sizes operands;
    for (SymExpr operand : expression.operands()) operands.push_back(translated(operand));
    return expression.kind() == SymKind::kAdd ? to_.symbols->add(operands) : to_.symbols->mul(operands);
  }

  /// The copy must not refer to the other component's sizes: that component may be destroyed first.
  NewValue copy_of(const Value& value) {
    NewValue copy{value.name, value.type};
    if (auto* tensor = std::get_if<TensorType>(&copy.type)) {
      tensor->strides.clear();
      for (SymExpr& size : tensor->shape) size = translated(size);
    } else {
      SymType& number = std::get<SymType>(copy.type);
      number.expression = translated(number.expression);
    }
    return copy;
  }

  void copy_node(const Node& node) {
    std::vector<Argument> arguments = node.arguments;
    for (Argument& argument : arguments) {
      for_each_value(argument, [&](ValueId& operand, uint32_t) {
        if (operand.is_valid()) operand = values_[operand];
      });
    }
    std::vector<NewValue> outputs;
    for (ValueId id : node.outputs) outputs.push_back(copy_of(from_.entry()[id]));
    NodeId copied = rewriter_.create(node.op, std::move(arguments), std::move(outputs), node.location);
    for (size_t i = 0; i < node.outputs.size(); ++i) values_[node.outputs[i]] = rewriter_.graph()[copied].outputs[i];
  }

  const Component& from_;
  Component& to_;
  Rewriter& rewriter_;
  RuleContext context_;
  AtenBuilder f_;
  ValueId hidden_;                       // of `to_`
  std::map<ValueId, ValueId> values_;    // of `from_` -> of `to_`
  std::map<std::string, size_t> sizes_;  // size in `from_` -> dim of `hidden_` that has it
};

/// The encoder's outputs that an edit names.
ValueId output_of(const Component& component, const std::string& name) {
  auto found = std::ranges::find(component.outputs, name, &OutputSpec::name);
  if (found == component.outputs.end()) Border::refuse(format("{} has no output {}", component.name, quoted(name)));
  const Argument& output = component.entry().outputs()[static_cast<size_t>(found - component.outputs.begin())];
  const ValueId* value = output.get_if<ValueId>();
  if (value == nullptr || component.entry()[*value].tensor() == nullptr)
    Border::refuse(format("the output {} of {} is no tensor", quoted(name), component.name));
  return *value;
}

/// The branch that computes the states from the hidden states; its inputs are these and the given states.
Graph computing(Border& border, const Component& encoder, const ComputeCrossStates& edit,
                const std::vector<TensorType>& types) {
  Graph graph;
  Rewriter rewriter(graph);
  std::vector<ValueId> inputs;
  for (const TensorType& type : types) inputs.push_back(rewriter.add_input({"", type}));
  Transplant transplant(border.program, encoder, border.component, rewriter);
  transplant.identify(output_of(encoder, edit.hidden_output), inputs[0]);
  std::vector<Argument> outputs;
  for (const auto& state : edit.states) outputs.emplace_back(transplant.copy(output_of(encoder, state.computed)));
  rewriter.set_outputs(std::move(outputs));
  return graph;
}

/// The branch that returns the given states.
Graph passing(const std::vector<TensorType>& types) {
  Graph graph;
  Rewriter rewriter(graph);
  std::vector<Argument> outputs;
  for (const TensorType& type : types) outputs.emplace_back(rewriter.add_input({"", type}));
  outputs.erase(outputs.begin());
  rewriter.set_outputs(std::move(outputs));
  return graph;
}

void compute_if_empty(Border& border, const Component& encoder, const ComputeCrossStates& edit) {
  constexpr size_t kDim = 2;  // along which states are empty
  constexpr std::string_view kCond =
      "higher_order.cond(Any pred, Graph true_graph, Graph false_graph, Any[] operands) -> Any[]";
  constexpr std::string_view kEqual = "_operator.eq(Any a, Any b) -> Any";
  SymExpr length = border.new_size("given_encoder_sequence");
  std::vector<ValueId> inner;
  ValueList operands = {border.input(edit.hidden_input)};
  std::vector<TensorType> types = {border.type(operands[0])}, results;
  for (const auto& state : edit.states) {
    inner.push_back(border.input(state.input));
    results.push_back({border.type(inner.back()).dtype, border.type(inner.back()).shape, {}});
    types.push_back(results.back());
    if (types.back().shape.size() <= kDim) Border::refuse(format("{} has no dim {}", quoted(state.input), kDim));
    types.back().shape[kDim] = length;
    operands.push_back(border.retype_input(state.input, types.back().dtype, types.back().shape));
  }
  auto first = static_cast<uint32_t>(border.component.graphs.size());
  AtenBuilder& f = border.top();
  ValueId is_empty =
      f.value(kEqual, {{"a", f.size_node(operands[1], kDim)}, {"b", int64_t{0}}},
              SymType{SymType::Kind::kBool, f.symbols().compare(SymKind::kEq, length, f.symbols().integer(0))});
  std::vector<ValueId> states = f.nodes(
      kCond,
      {{"pred", is_empty}, {"true_graph", GraphId{first}}, {"false_graph", GraphId{first + 1}}, {"operands", operands}},
      results);
  for (size_t i = 0; i < states.size(); ++i) {
    border.rewriter.replace_uses(inner[i], states[i]);
    border.rewriter.erase_input(inner[i]);
    border.add_output(edit.states[i].output, states[i]);
  }
  Graph computed = computing(border, encoder, edit, types);
  // From here on references to the border's own graph may be invalid.
  border.component.graphs.push_back(std::move(computed));
  border.component.graphs.push_back(passing(types));
}

}  // namespace

void apply(Border& border, const ComputeCrossStates& edit) {
  const Component* encoder = border.program.find_component(edit.component);
  if (encoder == nullptr) Border::refuse(format("the model has no component {}", edit.component));
  if (edit.states.empty()) Border::refuse("there are no states of cross attention");
  if (!edit.states[0].output.empty()) return compute_if_empty(border, *encoder, edit);
  border.top();
  Transplant transplant(border.program, *encoder, border.component, border.rewriter);
  transplant.identify(output_of(*encoder, edit.hidden_output), border.input(edit.hidden_input));
  for (const auto& state : edit.states)
    border.replace(border.take_input(state.input), transplant.copy(output_of(*encoder, state.computed)));
}

}  // namespace argosy
