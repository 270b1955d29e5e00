#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

bool is_real(const Graph& graph, ValueId value) {
  const TensorType* type = value.is_valid() ? graph[value].tensor() : nullptr;
  return type != nullptr && kind_of(type->dtype) == DTypeKind::kFloat;
}

/// Under autocast an op computes in the dtype of its result, whatever dtypes its operands have; except ops that have a
/// dtype argument.
void cast_operands(AtenBuilder& f, const OpSchema& schema, Node& node, const TensorType* result) {
  if (result == nullptr || kind_of(result->dtype) != DTypeKind::kFloat || schema.find_argument("dtype")) return;
  std::optional<DType> common;
  for (const Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId value, uint32_t) {
      if (is_real(f.graph(), value)) common = common ? promote(*common, f.dtype(value)) : f.dtype(value);
    });
  }
  if (!common || *common == result->dtype) return;
  for (Argument& argument : node.arguments) {
    for_each_value(argument, [&](ValueId& value, uint32_t) {
      if (is_real(f.graph(), value)) value = f.cast(value, result->dtype);
    });
  }
}

/// The nodes of the body. Whether gradients are recorded changes no number; casts of an autocast are made explicit.
Result<bool> inline_body(RuleContext& context, const RewriteRule& rule) {
  const Node node = context.rewriter.graph()[context.node];
  auto body_at = std::ranges::find_if(node.arguments, [](const Argument& each) { return each.is<GraphId>(); });
  if (body_at == node.arguments.end()) return false;
  bool is_cast = rule.op == "higher_order.wrap_with_autocast" && node.arguments[2] != Argument(false);
  const Graph& body = context.component.graphs[body_at->get_if<GraphId>()->index];
  const std::vector<Argument> operands(body_at + 1, node.arguments.end());
  auto is_value = [](const Argument& each) { return each.is<ValueId>(); };
  if (operands.size() != body.inputs().size() || !std::ranges::all_of(operands, is_value) ||
      !std::ranges::all_of(body.outputs(), is_value)) {
    return false;
  }
  AtenBuilder builder(context);
  std::vector<ValueId> moved(body.value_limit());
  for (size_t i = 0; i < operands.size(); ++i) moved[body.inputs()[i].index] = *operands[i].get_if<ValueId>();
  for (ValueId weight : body.weights()) {
    const Value& value = body[weight];
    moved[weight.index] = context.rewriter.add_weight({value.name, value.type}, value.weight);
  }
  for (NodeId id : body.nodes()) {
    Node inner = body[id];
    for (Argument& argument : inner.arguments) {
      for_each_value(argument, [&](ValueId& value, uint32_t) { value = moved[value.index]; });
    }
    if (is_cast && !inner.outputs.empty()) {
      cast_operands(builder, context.program.schemas[inner.op], inner, body[inner.outputs[0]].tensor());
    }
    std::vector<NewValue> outputs;
    for (ValueId output : inner.outputs) outputs.push_back({body[output].name, body[output].type});
    NodeId made = context.rewriter.create(inner.op, std::move(inner.arguments), std::move(outputs), inner.location);
    for (size_t i = 0; i < inner.outputs.size(); ++i) {
      moved[inner.outputs[i].index] = context.rewriter.graph()[made].outputs[i];
    }
  }
  std::vector<ValueId> results;
  for (const Argument& output : body.outputs()) results.push_back(moved[output.get_if<ValueId>()->index]);
  context.rewriter.replace(context.node, results);
  return true;
}

constexpr RewriteRule kWrappersRules[] = {
    {.op = "higher_order.wrap_with_autocast", .name = "inline-body", .apply = inline_body},
    {.op = "higher_order.wrap_with_set_grad_enabled", .name = "inline-body", .apply = inline_body},
};

}  // namespace

std::span<const RewriteRule> wrapper_rules() { return kWrappersRules; }

}  // namespace argosy
