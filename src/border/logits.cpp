#include "border/logits.h"

#include <limits>

#include "base/text.h"
#include "border/edits.h"
#include "passes/aten_schemas.h"

namespace argosy {
namespace {

/// The node of a value that nothing else reads, if it computes each token of its first operand by itself.
const Node* per_token_node(const AtenBuilder& f, ValueId value) {
  constexpr std::string_view kOps[] = {"aten.linear.default", "aten.mul.Scalar", "aten.div.Scalar", "aten.tanh.default",
                                       "aten.add.Scalar",     "aten.to.dtype",   "aten.mul.Tensor", "aten.div.Tensor"};
  if (f.graph()[value].uses.size() != 1) return nullptr;
  for (std::string_view op : kOps) {
    const Node* node = f.made_by(value, op);
    if (node == nullptr) continue;
    ValueId self = f.operand(*node, 0);
    bool is_by_number = !op.ends_with(".Tensor") || f.rank(f.operand(*node, 1)) == 0;
    return is_by_number && f.rank(self) == 3 && f.size(self, 1) == f.size(value, 1) ? node : nullptr;
  }
  return nullptr;
}

}  // namespace

TokenNodes token_nodes(const Border& border, ValueId output) {
  TokenNodes result{output, {}};
  while (const Node* node = per_token_node(border.look(), result.source)) {
    result.values.push_back(result.source);
    result.source = AtenBuilder::operand(*node, 0);
    if (border.program.schemas[node->op].name == "aten.linear.default") break;
  }
  return result;
}

void apply(Border& border, const KeepLastLogits& edit) {
  const Sizes shape = border.type(border.output_tensor(edit.output)).shape;
  ValueId mask = border.input(edit.mask);
  if (shape.size() != 3) Border::refuse(format("{} is not [batch, tokens, width]", quoted(edit.output)));
  if (border.type(mask).shape.size() != 2) Border::refuse(format("{} is not [batch, tokens]", quoted(edit.mask)));
  if (shape[1].as_integer() == 1) return;
  TokenNodes nodes = token_nodes(border, border.output_tensor(edit.output));
  cut_tokens(border, edit.output, nodes, [&](AtenBuilder& f) {
    // The last token of a row is the last one of this call that the mask has. Sizes of the cache are not used.
    SymExpr batch = f.size(nodes.source, 0), count = f.size(nodes.source, 1);
    Argument start = AtenBuilder::as_argument(f.item(f.symbols().mul(f.integer(-1), count), {nodes.source}));
    ValueId tokens = f.slice_between(mask, 1, std::move(start), std::numeric_limits<int64_t>::max(), count);
    ValueId last = f.amax(f.mul(tokens, f.arange(count, f.dtype(mask), {nodes.source})), {1}, false);
    ValueId rows = f.arange(batch, DType::kI64, {nodes.source});
    ValueId found = f.node(aten::kIndexTensor, {{"self", nodes.source}, {"indices", ValueList{rows, last}}},
                           f.dtype(nodes.source), {batch, f.size(nodes.source, 2)});
    return f.unsqueeze(found, 1);
  });
}

}  // namespace argosy
