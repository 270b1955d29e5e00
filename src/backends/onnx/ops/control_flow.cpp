#include "backends/onnx/translations.h"
#include "backends/onnx/translator.h"

namespace argosy::onnx {
namespace {

GraphId graph_argument(const NodeTranslator& e, std::string_view name) { return *e.argument(name).get_if<GraphId>(); }

/// A tensor, or a size as it is inside ([1]).
Ref operand(const NodeTranslator& e, ValueId value) {
  bool is_number = e.translator().graph()[value].number() != nullptr;
  return is_number ? e.translator().number(value) : e.tensor(value);
}

/// Operands of a higher-order op: tensors, and sizes as they are inside ([1]).
void add_operands(const NodeTranslator& e, const Argument& list, Refs& operands) {
  if (const ValueList* values = list.get_if<ValueList>()) {
    for (ValueId value : *values) {
      operands.push_back(operand(e, value));
    }
  } else if (const IntList* items = list.get_if<IntList>()) {
    for (const IntItem& item : *items) operands.push_back(e.size_item(item));
  } else if (const ArgumentList* mixed = list.get_if<ArgumentList>()) {
    for (const Argument& item : mixed->items) {
      const ValueId* value = item.get_if<ValueId>();
      if (value == nullptr) e.decline("an operand that is neither a tensor nor a size");
      operands.push_back(operand(e, *value));
    }
  }
}

/// Results of a sub-graph, cast to the types of the op's own results.
Refs typed(const NodeTranslator& e, Refs values) {
  for (size_t i = 0; i < values.size() && i < e.result_count(); ++i) {
    if (values[i].is_valid()) values[i] = e.cast(values[i], e.result(i).dtype);
  }
  return values;
}

/// Outputs of a sub-graph must be made in it: ONNX does not allow values of an outer graph there.
Refs own(const NodeTranslator& e, Refs values) {
  for (Ref& value : values) value = e.node("Identity", {value});
  return values;
}

// cond(pred, true_graph, false_graph, operands)
void emit_cond(const NodeTranslator& e, const Translation&) {
  Builder& b = e.builder();
  const Argument& pred = e.argument("pred");
  Ref condition;
  if (const ValueId* value = pred.get_if<ValueId>()) {
    condition = e.translator().graph()[*value].number() != nullptr ? e.without_dims(e.translator().number(*value))
                                                                   : e.tensor(*value);
  } else if (const bool* flag = pred.get_if<bool>()) {
    condition = b.scalar(int64_t{*flag ? 1 : 0}, DType::kBool);
  } else {
    e.decline("a condition that is no value");
  }
  condition = e.node("Reshape", {e.cast(condition, DType::kBool), e.ints({})});
  Refs operands;
  add_operands(e, e.argument("operands"), operands);
  uint32_t branches[2];
  for (int i = 0; i < 2; ++i) {
    b.open_graph(i == 0 ? "then" : "else");
    Refs results;
    try {
      results = e.translator().run_subgraph(graph_argument(e, i == 0 ? "true_graph" : "false_graph"), operands);
      branches[i] = b.close_graph(own(e, typed(e, std::move(results))));
    } catch (Declined&) {
      b.close_graph({});
      throw;
    }
  }
  Refs results =
      b.node("If", {condition}, e.result_count(), {{"then_branch", branches[0]}, {"else_branch", branches[1]}});
  for (size_t i = 0; i < results.size(); ++i) b[results[i]].dtype = e.result(i).dtype;
  e.yield(results);
}

// while_loop(cond_graph, body_graph, carried, additional)
void emit_while_loop(const NodeTranslator& e, const Translation&) {
  Builder& b = e.builder();
  Refs carried, additional;
  add_operands(e, e.argument("carried"), carried);
  add_operands(e, e.argument("additional"), additional);
  auto with_additional = [&](Refs values) {
    values.insert(values.end(), additional.begin(), additional.end());
    return values;
  };
  auto condition_of = [&](const Refs& values) {
    Refs results = e.translator().run_subgraph(graph_argument(e, "cond_graph"), with_additional(values));
    return e.node("Reshape", {e.cast(results.front(), DType::kBool), e.ints({})});
  };
  Ref first = condition_of(carried);
  Refs inputs = {b.add_value({"", DType::kI64, std::vector<Dim>{}}),
                 b.add_value({"", DType::kBool, std::vector<Dim>{}})};
  Refs state;
  for (Ref value : carried) {
    state.push_back(b.add_value({"", b.dtype(value), std::nullopt}));
    inputs.push_back(state.back());
  }
  b.open_graph("body", inputs);
  Refs next;
  try {
    next = e.translator().run_subgraph(graph_argument(e, "body_graph"), with_additional(state));
  } catch (Declined&) {
    b.close_graph({});
    throw;
  }
  for (size_t i = 0; i < next.size(); ++i) next[i] = e.cast(next[i], b.dtype(state[i]));
  Refs outputs = {condition_of(next)};
  next = own(e, std::move(next));
  outputs.insert(outputs.end(), next.begin(), next.end());
  uint32_t body = b.close_graph(std::move(outputs));
  Refs loop = {Ref{}, first};
  loop.insert(loop.end(), carried.begin(), carried.end());
  Refs results = b.node("Loop", std::move(loop), carried.size(), {{"body", body}});
  for (size_t i = 0; i < results.size(); ++i) b[results[i]].dtype = b.dtype(carried[i]);
  e.yield(results);
}

// scan(combine, init, xs, additional): states first, then what each step of the first dim gives, stacked
void emit_scan(const NodeTranslator& e, const Translation&) {
  Builder& b = e.builder();
  Refs states, sequences, additional;
  add_operands(e, e.argument("init"), states);
  add_operands(e, e.argument("xs"), sequences);
  add_operands(e, e.argument("additional"), additional);
  Refs inputs;
  for (const Refs* values : {&states, &sequences}) {
    for (Ref value : *values) inputs.push_back(b.add_value({"", b.dtype(value), std::nullopt}));
  }
  b.open_graph("step", inputs);
  Refs operands = inputs;
  operands.insert(operands.end(), additional.begin(), additional.end());
  uint32_t body = 0;
  try {
    body = b.close_graph(own(e, typed(e, e.translator().run_subgraph(graph_argument(e, "combine"), operands))));
  } catch (Declined&) {
    b.close_graph({});
    throw;
  }
  auto count = static_cast<int64_t>(sequences.size());
  Refs given = states;
  given.insert(given.end(), sequences.begin(), sequences.end());
  Refs results = b.node("Scan", std::move(given), e.result_count(), {{"body", body}, {"num_scan_inputs", count}});
  for (size_t i = 0; i < results.size(); ++i) b[results[i]].dtype = e.result(i).dtype;
  e.yield(results);
}

constexpr Translation kControlFlow[] = {
    {"higher_order.cond", emit_cond},
    {"higher_order.while_loop", emit_while_loop},
    {"higher_order.scan", emit_scan},
};

}  // namespace

std::span<const Translation> control_flow_translations() { return kControlFlow; }

}  // namespace argosy::onnx
