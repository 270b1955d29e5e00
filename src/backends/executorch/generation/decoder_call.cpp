#include "backends/executorch/generation/decoder_call.h"

#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kAdd = "_operator.add(Any a, Any b) -> Any";

}  // namespace

DecoderCall::DecoderCall(Program& the_program, Component& the_component, ValueId the_tokens, SymExpr the_sequence,
                         SymExpr the_total, int64_t the_largest)
    : program(the_program),
      component(the_component),
      rewriter(the_component.graphs.front()),
      tokens(the_tokens),
      sequence(the_sequence),
      total(the_total),
      largest(the_largest),
      positions(rewriter.add_input({std::string(kPositions), TensorType{DType::kI64, {sequence}, {}}})),
      context_{the_program, the_component, rewriter, NodeId{}},
      f_(context_),
      old_nodes_(graph().node_limit()) {
  top();
  start = f_.value(aten::kItem, {{"self", f_.select(positions, 0, 0)}}, SymType{SymType::Kind::kInt, past()});
  length = f_.size_node(positions, 0);
  end = f_.value(kAdd, {{"a", start}, {"b", length}}, SymType{SymType::Kind::kInt, total});
  f_.know_size(past(), start);
  f_.know_size(sequence, length);
  f_.know_size(total, end);
}

AtenBuilder& DecoderCall::top() {
  NodeId first = graph().first();
  while (first.is_valid() && first.index >= old_nodes_) first = graph().next(first);
  return first.is_valid() ? before(first) : at_end();
}

AtenBuilder& DecoderCall::before(NodeId node) {
  rewriter.insert_before(node);
  return f_;
}

AtenBuilder& DecoderCall::at_end() {
  rewriter.insert_at_end();
  return f_;
}

bool is_middle_swap(const Program& program, const Node& node) {
  return program.schemas[node.op].name == "aten.permute.default" && node.arguments.size() == 2 &&
         numbers(node.arguments[1]) == std::optional(std::vector<int64_t>{0, 2, 1, 3});
}

ValueId DecoderCall::swap_middle(ValueId tensor) {
  const Node* permute = f_.made_by(tensor, "aten.permute.default");
  if (permute != nullptr && is_middle_swap(program, *permute)) return AtenBuilder::operand(*permute, 0);
  return f_.transpose(tensor, 1, 2);
}

}  // namespace argosy::executorch
