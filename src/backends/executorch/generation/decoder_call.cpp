#include "backends/executorch/generation/decoder_call.h"

#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kAdd = "_operator.add(Any a, Any b) -> Any";

}  // namespace

DecoderCall::DecoderCall(Program& the_program, Component& the_component, ValueId the_tokens, SymExpr the_sequence,
                         SymExpr the_total, int64_t the_largest)
    : Border(the_program, the_component),
      tokens(the_tokens),
      sequence(the_sequence),
      total(the_total),
      largest(the_largest),
      positions(rewriter.add_input({std::string(kPositions), TensorType{DType::kI64, {sequence}, {}}})) {
  AtenBuilder& f = top();
  start = f.value(aten::kItem, {{"self", f.select(positions, 0, 0)}}, SymType{SymType::Kind::kInt, past()});
  length = f.size_node(positions, 0);
  end = f.value(kAdd, {{"a", start}, {"b", length}}, SymType{SymType::Kind::kInt, total});
  f.know_size(past(), start);
  f.know_size(sequence, length);
  f.know_size(total, end);
}

bool is_middle_swap(const Program& program, const Node& node) {
  return program.schemas[node.op].name == "aten.permute.default" && node.arguments.size() == 2 &&
         numbers(node.arguments[1]) == std::optional(std::vector<int64_t>{0, 2, 1, 3});
}

ValueId DecoderCall::swap_middle(ValueId tensor) {
  const Node* permute = look().made_by(tensor, "aten.permute.default");
  if (permute != nullptr && is_middle_swap(program, *permute)) return AtenBuilder::operand(*permute, 0);
  return here().transpose(tensor, 1, 2);
}

}  // namespace argosy::executorch
