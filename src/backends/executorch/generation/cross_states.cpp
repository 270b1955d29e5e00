#include "backends/executorch/generation/cross_states.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "io/json.h"
#include "ir/rewriter.h"
#include "passes/aten_builder.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kHiddenInput = "encoder_hidden_states";

/// Copies nodes of one graph to the top of another one.
class Transplant {
 public:
  Transplant(Program& program, const Component& from, Component& to)
      : program_(program), from_(from), to_(to), rewriter_(to.graphs.front()) {
    if (to.entry().first().is_valid()) rewriter_.insert_before(to.entry().first());
  }

  Rewriter& rewriter() { return rewriter_; }
  /// That value of the one graph is this value of the other; sizes of theirs are equal.
  Status identify(ValueId from, ValueId to) {
    values_[from.index] = to;
    const TensorType& a = *from_.entry()[from].tensor();
    const TensorType& b = *to_.entry()[to].tensor();
    if (a.shape.size() != b.shape.size()) return strange("hidden states of two ranks");
    for (size_t i = 0; i < a.shape.size(); ++i) {
      if (a.shape[i].kind() == SymKind::kSymbol) sizes_[std::string(a.shape[i].symbol_name())] = b.shape[i];
    }
    hidden_ = to;
    return {};
  }

  Result<ValueId> copy(ValueId wanted) {
    std::vector<ValueId> waiting = {wanted};
    while (!waiting.empty()) {
      ValueId id = waiting.back();
      if (values_.contains(id.index)) {
        waiting.pop_back();
        continue;
      }
      const argosy::Value& value = from_.entry()[id];
      if (value.weight.is_valid()) {
        values_[id.index] = weight(value);
        continue;
      }
      if (!value.producer.is_valid()) return fail(strange(format("{}", value.name)).error());
      if (value.number() != nullptr && copy_size(id)) continue;
      const Node& node = from_.entry()[value.producer];
      bool is_ready = true;
      for (const Argument& argument : node.arguments) {
        if (argument.is<GraphId>()) return fail(strange("a higher-order op").error());
        for_each_value(argument, [&](ValueId operand, uint32_t) {
          if (!operand.is_valid() || values_.contains(operand.index)) return;
          waiting.push_back(operand);
          is_ready = false;
        });
      }
      if (is_ready) ARGOSY_TRY_STATUS(copy_node(node));
    }
    return values_[wanted.index];
  }

 private:
  static Status strange(const std::string& what) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("what the decoder attends to depends on more than the encoder's hidden states: {}", what));
  }

  ValueId weight(const argosy::Value& value) {
    for (ValueId id : to_.entry().weights()) {
      if (to_.entry()[id].weight == value.weight) return id;
    }
    return rewriter_.add_weight({value.name, value.type}, value.weight);
  }

  /// A number that is a size of the hidden states.
  bool copy_size(ValueId id) {
    SymExpr expression = from_.entry()[id].number()->expression;
    if (!expression.is_valid() || expression.kind() != SymKind::kSymbol) return false;
    auto found = sizes_.find(std::string(expression.symbol_name()));
    if (found == sizes_.end()) return false;
    const TensorType& hidden = *to_.entry()[hidden_].tensor();
    for (size_t i = 0; i < hidden.shape.size(); ++i) {
      if (hidden.shape[i] != found->second) continue;
      RuleContext context{program_, to_, rewriter_, NodeId{}};
      values_[id.index] = AtenBuilder(context).size_node(hidden_, i);
      return true;
    }
    return false;
  }

  Result<SymExpr> translated(SymExpr expression) {
    if (!expression.is_valid()) return expression;
    if (auto number = expression.as_integer()) return to_.symbols->integer(*number);
    if (expression.kind() == SymKind::kSymbol) {
      auto found = sizes_.find(std::string(expression.symbol_name()));
      if (found != sizes_.end()) return found->second;
    }
    if (expression.kind() == SymKind::kAdd || expression.kind() == SymKind::kMul) {
      std::vector<SymExpr> operands;
      for (SymExpr operand : expression.operands()) {
        ARGOSY_TRY(SymExpr one, translated(operand));
        operands.push_back(one);
      }
      return expression.kind() == SymKind::kAdd ? to_.symbols->add(operands) : to_.symbols->mul(operands);
    }
    return fail(strange(from_.symbols->to_text(expression)).error());
  }

  Status copy_node(const Node& node) {
    std::vector<Argument> arguments = node.arguments;
    for (Argument& argument : arguments) {
      for_each_value(argument, [&](ValueId& operand, uint32_t) {
        if (operand.is_valid()) operand = values_[operand.index];
      });
    }
    std::vector<NewValue> outputs;
    for (ValueId id : node.outputs) {
      const argosy::Value& value = from_.entry()[id];
      NewValue& output = outputs.emplace_back(NewValue{value.name, value.type});
      if (auto* tensor = std::get_if<TensorType>(&output.type)) {
        tensor->strides.clear();
        for (SymExpr& size : tensor->shape) {
          ARGOSY_TRY(size, translated(size));
        }
      } else {
        SymType& number = std::get<SymType>(output.type);
        ARGOSY_TRY(number.expression, translated(number.expression));
      }
    }
    NodeId copied = rewriter_.create(node.op, std::move(arguments), std::move(outputs), node.location);
    for (size_t i = 0; i < node.outputs.size(); ++i) values_[node.outputs[i].index] = to_.entry()[copied].outputs[i];
    return {};
  }

  Program& program_;
  const Component& from_;
  Component& to_;
  Rewriter rewriter_;
  ValueId hidden_;                        // of `to_`
  std::map<uint32_t, ValueId> values_;    // of `from_` -> of `to_`
  std::map<std::string, SymExpr> sizes_;  // symbols of `from_` -> sizes of `to_`
};

}  // namespace

Result<std::string> wired_output(const Program& program, const std::string& from, const std::string& to,
                                 const std::string& input) {
  auto attribute = program.attributes.find("capture.wiring");
  if (attribute == program.attributes.end()) return std::string();
  ARGOSY_TRY(JsonDocument wiring, JsonDocument::parse(attribute->second, "capture.wiring"));
  for (JsonView wire : wiring.root().items()) {
    std::string source(wire.find("from").as_string().value_or("")), target(wire.find("to").as_string().value_or(""));
    if (!source.starts_with(from + ".") || !target.starts_with(to + ".")) continue;
    std::string name = target.substr(to.size() + 1);
    std::string flat = name;
    std::ranges::replace(flat, '.', '_');
    if (name == input || flat == input) return source.substr(from.size() + 1);
  }
  return std::string();
}

Status compute_cross_states(Program& program, const Component& encoder, Component& decoder) {
  auto hidden_input = std::ranges::find(decoder.inputs, kHiddenInput, &InputSpec::name);
  if (hidden_input == decoder.inputs.end() || !hidden_input->value.is_valid())
    return fail(ErrorCode::kUnsupportedFeature, "the decoder is not given the encoder's hidden states");
  auto output_value = [&](const std::string& name) -> const ValueId* {
    auto found = std::ranges::find(encoder.outputs, name, &OutputSpec::name);
    if (found == encoder.outputs.end()) return nullptr;
    return encoder.entry().outputs()[static_cast<size_t>(found - encoder.outputs.begin())].get_if<ValueId>();
  };
  ARGOSY_TRY(std::string hidden_output, wired_output(program, encoder.name, decoder.name, std::string(kHiddenInput)));
  const ValueId* hidden = output_value(hidden_output);
  if (hidden == nullptr) return fail(ErrorCode::kUnsupportedFeature, "the encoder does not give its hidden states");
  Transplant transplant(program, encoder, decoder);
  ARGOSY_TRY_STATUS(transplant.identify(*hidden, hidden_input->value));
  const std::vector<InputSpec> inputs = decoder.inputs;
  for (const InputSpec& input : inputs) {
    if (input.name == kHiddenInput || !input.value.is_valid()) continue;
    ARGOSY_TRY(std::string name, wired_output(program, encoder.name, decoder.name, input.name));
    if (name.empty()) continue;
    const ValueId* computed = output_value(name);
    if (computed == nullptr)
      return fail(ErrorCode::kCorruptFile, format("the capture's wiring has {}, which the encoder lacks", name));
    ARGOSY_TRY(ValueId value, transplant.copy(*computed));
    transplant.rewriter().replace_uses(input.value, value);
    transplant.rewriter().erase_input(input.value);
    std::erase_if(decoder.inputs, [&](const InputSpec& spec) { return spec.name == input.name; });
  }
  return {};
}

}  // namespace argosy::executorch
