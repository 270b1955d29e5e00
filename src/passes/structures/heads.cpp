#include "passes/structures/heads.h"

namespace argosy {

std::vector<NodeId> attention_nodes(const Program& program, const Component& component) {
  std::vector<NodeId> found;
  for (NodeId node : component.entry().nodes()) {
    std::string_view op = program.schemas[component.entry()[node].op].name;
    if (op == "aten.scaled_dot_product_attention.default" || op == "argosy.attention.default") found.push_back(node);
  }
  return found;
}

ValueId before_repeat(const AtenBuilder& f, ValueId tensor) {
  // Heads are repeated by [b, h, t, d] -> [b, h, 1, t, d] -> [b, h, n, t, d] -> [b, h * n, t, d].
  const Node* merged = f.made_by(tensor, "aten.reshape.default");
  const Node* expanded = f.made_by(merged, 0, "aten.expand.default");
  const Node* inserted = f.made_by(expanded, 0, "aten.unsqueeze.default");
  if (inserted == nullptr) return tensor;
  ValueId source = f.operand(*inserted, 0);
  const Sizes &from = f.shape(source), &middle = f.shape(inserted->outputs[0]), &wide = f.shape(expanded->outputs[0]),
              &to = f.shape(tensor);
  if (from.size() != 4 || to.size() != 4 || wide.size() != 5 || middle[2].as_integer() != 1) return tensor;
  bool is_repeat = wide[1] == from[1] && wide[3] == from[2] && wide[4] == from[3] && to[2] == from[2] &&
                   to[3] == from[3] && middle[1] == from[1] && middle[3] == from[2];
  return is_repeat ? source : tensor;
}

ValueId merge_heads(AtenBuilder& f, ValueId tensor) {
  const Node* swapped = f.made_by(tensor, "aten.permute.default");
  bool is_swap = swapped != nullptr && numbers(swapped->arguments[1]) == kHeadsAndTokens;
  ValueId by_token = is_swap ? AtenBuilder::operand(*swapped, 0) : f.permute(tensor, kHeadsAndTokens);
  const Sizes shape = f.shape(by_token);
  Sizes merged = {shape[0], shape[1], f.symbols().mul(shape[2], shape[3])};
  const Node* split = f.made_by(by_token, "aten.reshape.default");
  if (split != nullptr && f.shape(AtenBuilder::operand(*split, 0)) == merged) return AtenBuilder::operand(*split, 0);
  return f.reshape(by_token, std::move(merged));
}

bool starts_at(const AtenBuilder& f, const Node& slice, int64_t start, int64_t every) {
  auto last = static_cast<int64_t>(f.rank(slice.outputs[0])) - 1;
  const auto *along = slice.arguments[1].get_if<int64_t>(), *from = slice.arguments[2].get_if<int64_t>(),
             *step = slice.arguments[4].get_if<int64_t>();
  bool starts_there = from != nullptr ? *from == start : start == 0 && slice.arguments[2].is<None>();
  return along != nullptr && *along == last && starts_there && step != nullptr && *step == every;
}

ValueId split_heads(AtenBuilder& f, ValueId tensor, int64_t heads) {
  const Sizes shape = f.shape(tensor);
  SymExpr count = f.integer(heads);
  return f.permute(f.reshape(tensor, {shape[0], shape[1], count, f.symbols().floor_div(shape[2], count)}),
                   kHeadsAndTokens);
}

}  // namespace argosy
