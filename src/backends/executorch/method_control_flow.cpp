#include <algorithm>

#include "backends/executorch/method_builder.h"

namespace argosy::executorch {

Status MethodBuilder::add_branches(Scope& scope, const Node& node) {
  ValueIndex condition;
  if (const bool* known = node.arguments[0].get_if<bool>()) {
    condition = values_.boolean(*known);
  } else {
    ARGOSY_TRY(condition, index_of(scope, std::get<ValueId>(node.arguments[0].variant())));
  }
  std::vector<ValueIndex> results;
  for (ValueId output : node.outputs) {
    ARGOSY_TRY(ValueIndex index, new_value(scope.graph[output].type));
    scope.indices[output.index] = index;
    results.push_back(index);
  }
  size_t to_second = method_.instructions.size();
  values_.add_instruction(JumpIfFalse{condition, 0});
  ARGOSY_TRY_STATUS(inline_graph(scope, node, 1, results));
  size_t to_end = method_.instructions.size();
  values_.add_instruction(JumpIfFalse{values_.boolean(false), 0});
  std::get<JumpIfFalse>(method_.instructions[to_second]).target = static_cast<uint32_t>(to_end + 1);
  ARGOSY_TRY_STATUS(inline_graph(scope, node, 2, results));
  // A jump must lead to an instruction, but the graph may end here: so a move is added.
  std::get<JumpIfFalse>(method_.instructions[to_end]).target = static_cast<uint32_t>(method_.instructions.size());
  values_.add_instruction(Move{values_.boolean(false), values_.computed_number()});
  return {};
}

Status MethodBuilder::inline_graph(Scope& scope, const Node& node, size_t argument,
                                   const std::vector<ValueIndex>& results) {
  const Graph& graph = component_.graphs[std::get<GraphId>(node.arguments[argument].variant()).index];
  Scope inner{graph, std::vector<ValueIndex>(graph.value_limit(), kNoValue)};
  std::vector<ValueIndex> operands;
  if (const auto* list = node.arguments[3].get_if<ValueList>()) {
    for (ValueId id : *list) {
      ARGOSY_TRY(ValueIndex index, index_of(scope, id));
      operands.push_back(index);
    }
  } else if (const auto* numbers = node.arguments[3].get_if<IntList>(); numbers != nullptr && !numbers->empty()) {
    return fail(ErrorCode::kUnsupportedFeature, "a branch on numbers is not written for ExecuTorch");
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) inner.indices[graph.inputs()[i].index] = operands[i];
  ARGOSY_TRY_STATUS(add_nodes(inner));
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId* id = graph.outputs()[i].get_if<ValueId>();
    if (id == nullptr || graph[*id].tensor() == nullptr)
      return fail(ErrorCode::kUnsupportedFeature, "a branch whose result is a number is not written for ExecuTorch");
    ARGOSY_TRY(ValueIndex from, index_of(inner, *id));
    copy(from, results[i]);
  }
  return {};
}

Status MethodBuilder::add_scan(Scope& scope, const Node& node) {
  const Graph& graph = component_.graphs[std::get<GraphId>(node.arguments[0].variant()).index];
  ARGOSY_TRY(std::vector<ValueIndex> initial, operands_of(scope, node.arguments[1]));
  ARGOSY_TRY(std::vector<ValueIndex> sequences, operands_of(scope, node.arguments[2]));
  ARGOSY_TRY(std::vector<ValueIndex> shared, operands_of(scope, node.arguments[3]));
  size_t inputs = initial.size() + sequences.size() + shared.size();
  if (sequences.empty() || graph.inputs().size() != inputs || node.outputs.size() < initial.size())
    return fail(ErrorCode::kUnsupportedFeature, "such a scan is not written for ExecuTorch");

  std::vector<ValueIndex> states, rows;
  Scope inner{graph, std::vector<ValueIndex>(graph.value_limit(), kNoValue)};
  for (size_t i = 0; i < initial.size(); ++i) {
    ARGOSY_TRY(ValueIndex state, new_value(scope.graph[node.outputs[i]].type));
    copy(initial[i], state);
    states.push_back(state);
    scope.indices[node.outputs[i].index] = state;
    inner.indices[graph.inputs()[i].index] = state;
  }
  ValueIndex step = values_.computed_number(), count = values_.computed_number(), is_done = values_.computed_number();
  values_.call("aten::sym_size.int", {sequences[0], values_.integer(0), count});
  for (size_t i = initial.size(); i < node.outputs.size(); ++i) {
    ARGOSY_TRY(ValueIndex all, new_value(scope.graph[node.outputs[i]].type));
    values_.tensor(all).is_dynamic = true;  // grows with every step
    scope.indices[node.outputs[i].index] = all;
    rows.push_back(all);
    // Its bytes are needed from here on.
    std::vector<ValueIndex> none(values_.tensor(all).sizes.size(), values_.integer(0));
    values_.call("aten::empty.out", {values_.integers(std::move(none)), values_.none(), all, all});
  }
  for (size_t i = 0; i < shared.size(); ++i)
    inner.indices[graph.inputs()[initial.size() + sequences.size() + i].index] = shared[i];
  values_.add_instruction(Move{values_.integer(0), step});

  auto begin = static_cast<uint32_t>(method_.instructions.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    ValueId input = graph.inputs()[initial.size() + i];
    ARGOSY_TRY(ValueIndex part, new_value(graph[input].type));
    inner.indices[input.index] = part;
    values_.call("aten::select_copy.int_out", {sequences[i], values_.integer(0), step, part, part});
  }
  ARGOSY_TRY_STATUS(add_nodes(inner));
  std::vector<ValueIndex> results;
  for (const Argument& output : graph.outputs()) {
    const ValueId* id = output.get_if<ValueId>();
    if (id == nullptr || graph[*id].tensor() == nullptr)
      return fail(ErrorCode::kUnsupportedFeature, "a scan whose result is no tensor is not written for ExecuTorch");
    ARGOSY_TRY(ValueIndex index, index_of(inner, *id));
    results.push_back(index);
  }
  if (results.size() != states.size() + rows.size())
    return fail(ErrorCode::kUnsupportedFeature, "such a scan is not written for ExecuTorch");
  for (size_t i = 0; i < rows.size(); ++i) append_row(rows[i], results[states.size() + i], step);
  // A step that hands one state on as another would overwrite what it still has to read.
  for (size_t i = 0; i < states.size(); ++i) {
    bool is_state = std::ranges::find(states, values_.root_of(results[i])) != states.end();
    if (!is_state || results[i] == states[i]) continue;
    ValueIndex held = values_.add(Tensor(values_.tensor(states[i])));
    copy(results[i], held);
    results[i] = held;
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (results[i] != states[i]) copy(results[i], states[i]);
  }
  values_.call("executorch_prim::add.Scalar", {step, values_.integer(1), step});
  values_.call("executorch_prim::eq.Scalar", {step, count, is_done});
  values_.add_instruction(JumpIfFalse{is_done, begin});
  return {};
}

void MethodBuilder::append_row(ValueIndex rows, ValueIndex row, ValueIndex step) {
  std::vector<ValueIndex> sizes = {step};
  const size_t rank = values_.tensor(row).sizes.size();
  for (size_t i = 0; i < rank; ++i) {
    if (!values_.tensor(row).is_dynamic) {
      sizes.push_back(values_.integer(values_.tensor(row).sizes[i]));
      continue;
    }
    sizes.push_back(values_.computed_number());
    values_.call("aten::sym_size.int", {row, values_.integer(static_cast<int64_t>(i)), sizes.back()});
  }
  values_.call("aten::empty.out", {values_.integers(std::move(sizes)), values_.none(), rows, rows});
  values_.call("executorch_prim::et_copy_index.tensor", {rows, row, step});
}

Result<std::vector<ValueIndex>> MethodBuilder::operands_of(Scope& scope, const Argument& argument) {
  std::vector<ValueIndex> operands;
  const auto* list = argument.get_if<ValueList>();
  const auto* numbers = argument.get_if<IntList>();
  if (list == nullptr && (numbers == nullptr || !numbers->empty()))
    return fail(ErrorCode::kUnsupportedFeature, "a loop over numbers is not written for ExecuTorch");
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    ARGOSY_TRY(ValueIndex index, index_of(scope, (*list)[i]));
    operands.push_back(index);
  }
  return operands;
}

}  // namespace argosy::executorch
