#include "backends/executorch/generation/attention.h"

#include <algorithm>
#include <limits>

#include "passes/aten_schemas.h"
#include "passes/match.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kLessEqual = "aten::le.Tensor(Tensor self, Tensor other) -> Tensor";
constexpr std::string_view kGreaterEqual = "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor";
constexpr std::string_view kWhere = "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor";
constexpr std::string_view kCustomSdpa =
    "llama::custom_sdpa(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float "
    "drpout_p=0.0, bool is_causal=False, float? scale=None) -> Tensor";

bool can_emit(const MaskConditions& conditions) {
  return std::ranges::all_of(conditions, [](const PositionCondition& condition) {
    return (condition.key == -1 && condition.token == 1) || (condition.key == 1 && condition.token == -1);
  });
}

/// Masks by what they say, each computed once at the top of the graph.
class MaskWriter {
 public:
  explicit MaskWriter(DecoderCall& call) : call_(call) {}

  /// bool [sequence, total]; at least one condition.
  Result<ValueId> allowed(const MaskConditions& conditions) {
    auto found = allowed_.find(conditions);
    if (found != allowed_.end()) return found->second;
    ValueId result;
    for (const PositionCondition& condition : conditions) {
      ARGOSY_TRY(ValueId one, compare(condition));
      if (result.is_valid()) {
        ARGOSY_TRY(result, call_.top(aten::kBitwiseAnd, {{"self", result}, {"other", one}}, type(DType::kBool)));
      } else {
        result = one;
      }
    }
    return allowed_.emplace(conditions, result).first->second;
  }

  /// f32 [sequence, total], zero where allowed. Finite elsewhere: a row of infinities has no largest value.
  Result<ValueId> added(const MaskConditions& conditions) {
    auto found = added_.find(conditions);
    if (found != added_.end()) return found->second;
    ARGOSY_TRY(ValueId condition, allowed(conditions));
    ARGOSY_TRY(ValueId zero, call_.top(aten::kFull, {{"size", IntList{1}}, {"fill_value", 0.0}, {"dtype", DType::kF32}},
                                       TensorType{DType::kF32, {call_.integer(1)}, {}}));
    ARGOSY_TRY(ValueId result, call_.top(kWhere,
                                         {{"condition", condition},
                                          {"self", zero},
                                          {"other", static_cast<double>(std::numeric_limits<float>::lowest())}},
                                         type(DType::kF32)));
    return added_.emplace(conditions, result).first->second;
  }

 private:
  TensorType type(DType dtype) const { return {dtype, {call_.sequence, call_.total}, {}}; }

  Result<ValueId> compare(const PositionCondition& condition) {
    if (!keys_.is_valid()) {
      ARGOSY_TRY(ValueId range,
                 call_.top(aten::kArange, {{"start", int64_t{0}}, {"end", call_.end}, {"dtype", DType::kI64}},
                           TensorType{DType::kI64, {call_.total}, {}}));
      ARGOSY_TRY(keys_, call_.top(aten::kUnsqueeze, {{"self", range}, {"dim", int64_t{0}}},
                                  TensorType{DType::kI64, {call_.integer(1), call_.total}, {}}));
      ARGOSY_TRY(tokens_, call_.top(aten::kUnsqueeze, {{"self", call_.positions}, {"dim", int64_t{1}}},
                                    TensorType{DType::kI64, {call_.sequence, call_.integer(1)}, {}}));
    }
    bool is_upper = condition.key < 0;  // k <= p + offset, or k >= p - offset
    ValueId tokens = tokens_;
    if (condition.offset != 0) {
      ARGOSY_TRY(tokens, call_.top(aten::kAddScalar,
                                   {{"self", tokens_}, {"other", is_upper ? condition.offset : -condition.offset}},
                                   call_.emit.type(tokens_)));
    }
    return call_.top(is_upper ? kLessEqual : kGreaterEqual, {{"self", keys_}, {"other", tokens}}, type(DType::kBool));
  }

  DecoderCall& call_;
  ValueId keys_, tokens_;  // positions [1, total] and [sequence, 1]
  std::map<MaskConditions, ValueId> allowed_, added_;
};

/// A value as keys of attention see it, and where it came from before heads were repeated.
struct KeySource {
  ValueId read;  // what keep_states() gave
  bool is_repeated = false;
};

KeySource source_of(const DecoderCall& call, ValueId keys) {
  const Graph& graph = call.graph();
  auto producer = [&](ValueId value, std::string_view op) -> const Node* {
    NodeId node = graph[value].producer;
    if (!node.is_valid() || call.program.schemas[graph[node].op].name != op) return nullptr;
    return &graph[node];
  };
  auto operand = [](const Node& node) { return std::get<ValueId>(node.arguments[0].variant()); };
  // Heads are repeated by [1, h, t, d] -> [1, h, 1, t, d] -> [1, h, n, t, d] -> [1, h * n, t, d].
  const Node* merged = producer(keys, "aten.reshape.default");
  if (merged == nullptr) return {keys, false};
  const Node* expanded = producer(operand(*merged), "aten.expand.default");
  if (expanded == nullptr) return {keys, false};
  ValueId grouped = operand(*expanded);
  const Node* inserted = producer(grouped, "aten.unsqueeze.default");
  if (inserted == nullptr) return {keys, false};
  ValueId source = operand(*inserted);
  const std::vector<SymExpr>& from = graph[source].tensor()->shape;
  const std::vector<SymExpr>& wide = graph[operand(*merged)].tensor()->shape;
  const std::vector<SymExpr>& to = graph[keys].tensor()->shape;
  const std::vector<SymExpr>& middle = graph[grouped].tensor()->shape;
  if (from.size() != 4 || to.size() != 4 || wide.size() != 5 || middle[2].as_integer() != std::optional<int64_t>(1))
    return {keys, false};
  bool is_repeat = wide[1] == from[1] && wide[3] == from[2] && wide[4] == from[3] && to[2] == from[2] &&
                   to[3] == from[3] && middle[1] == from[1] && middle[3] == from[2];
  return is_repeat ? KeySource{source, true} : KeySource{keys, false};
}

class AttentionRewriter {
 public:
  AttentionRewriter(DecoderCall& call, const std::map<uint32_t, CachedKeys>& keys)
      : call_(call),
        keys_(keys),
        masks_(call.program, call.component, call.sequence, call.total, call.largest, call.positions),
        writer_(call) {}

  Result<int> run() {
    int count = 0;
    for (NodeId node : call_.graph().nodes()) {
      if (!call_.graph().is_live(node)) continue;
      if (call_.program.schemas[call_.graph()[node].op].name != "aten.scaled_dot_product_attention.default") continue;
      ARGOSY_TRY(bool is_done, rewrite(node));
      if (is_done) ++count;
    }
    return count;
  }

 private:
  /// [1, total or more, heads, size].
  Result<ValueId> operand(ValueId read, const CachedKeys& kept, bool is_cut) {
    if (!kept.has_heads_last) return call_.swap_middle(read);
    if (!is_cut) return kept.cache;
    TensorType type = call_.emit.type(kept.cache);
    type.shape[1] = call_.total;
    return call_.emit(aten::kSlice,
                      {{"self", kept.cache}, {"dim", int64_t{1}}, {"start", int64_t{0}}, {"end", call_.end}},
                      std::move(type));
  }

  Result<bool> rewrite(NodeId node) {
    const std::vector<Argument> arguments = call_.graph()[node].arguments;
    if (arguments.size() < 7) return false;
    ValueId query = std::get<ValueId>(arguments[0].variant());
    ValueId key = source_of(call_, std::get<ValueId>(arguments[1].variant())).read;
    ValueId value = source_of(call_, std::get<ValueId>(arguments[2].variant())).read;
    auto kept_key = keys_.find(key.index), kept_value = keys_.find(value.index);
    if (kept_key == keys_.end() || kept_value == keys_.end()) return false;
    const TensorType query_type = call_.emit.type(query);
    const std::vector<SymExpr>& shape = query_type.shape;
    if (shape.size() != 4 || shape[2] != call_.sequence || shape[3] != call_.emit.type(key).shape[3] ||
        shape[3] != call_.emit.type(value).shape[3]) {
      return false;
    }
    if (query_type.dtype != call_.emit.type(key).dtype || query_type.dtype != call_.emit.type(value).dtype)
      return false;
    const auto* dropout = arguments[4].get_if<double>();
    const auto* is_causal_argument = arguments[5].get_if<bool>();
    if (dropout == nullptr || *dropout != 0 || is_causal_argument == nullptr || *is_causal_argument) return false;

    bool is_causal = false;
    ValueId mask;
    if (const ValueId* given = arguments[3].get_if<ValueId>()) {
      auto conditions = masks_.read(*given);
      if (conditions && *conditions == MaskConditions{kCausal}) {
        is_causal = true;
      } else if (conditions && !conditions->empty() && can_emit(*conditions)) {
        ARGOSY_TRY(mask, writer_.added(*conditions));
      } else if (!conditions || !conditions->empty()) {
        return false;
      }
    }
    call_.before(node);
    ARGOSY_TRY(ValueId swapped, call_.swap_middle(query));
    ARGOSY_TRY(ValueId all_keys, operand(key, kept_key->second, mask.is_valid()));
    ARGOSY_TRY(ValueId all_values, operand(value, kept_value->second, mask.is_valid()));
    std::vector<Emitter::Named> named = {{"query", swapped},         {"key", all_keys},        {"value", all_values},
                                         {"start_pos", call_.start}, {"is_causal", is_causal}, {"scale", arguments[6]}};
    if (mask.is_valid()) named.emplace_back("attn_mask", mask);
    TensorType type{query_type.dtype, call_.emit.type(swapped).shape, {}};
    ARGOSY_TRY(ValueId result, call_.emit(kCustomSdpa, std::move(named), std::move(type)));
    replace(node, result);
    return true;
  }

  /// Models put heads behind tokens again, as the result has them.
  void replace(NodeId node, ValueId result) {
    ValueId old_result = call_.graph()[node].outputs[0];
    std::vector<NodeId> swaps;
    for (const Use& use : call_.graph()[old_result].uses) {
      if (use.node.is_valid() && is_middle_swap(call_.program, call_.graph()[use.node])) swaps.push_back(use.node);
    }
    for (NodeId swap : swaps) call_.rewriter.replace(swap, std::vector<ValueId>{result});
    if (!call_.graph()[old_result].uses.empty()) {
      auto swapped = call_.swap_middle(result);
      call_.rewriter.replace_uses(old_result, *swapped);
    }
    call_.rewriter.erase(node);
  }

  DecoderCall& call_;
  const std::map<uint32_t, CachedKeys>& keys_;
  MaskReader masks_;
  MaskWriter writer_;
};

}  // namespace

Status simplify_masks(DecoderCall& call) {
  MaskReader reader(call.program, call.component, call.sequence, call.total, call.largest, call.positions);
  std::vector<std::pair<ValueId, MaskConditions>> found;
  for (NodeId id : call.graph().nodes()) {
    const Node& node = call.graph()[id];
    if (node.outputs.size() != 1) continue;
    const TensorType* type = call.graph()[node.outputs[0]].tensor();
    if (type == nullptr || type->dtype != DType::kBool || type->shape.size() < 2) continue;
    if (type->shape.back() != call.total || type->shape[type->shape.size() - 2] != call.sequence) continue;
    auto conditions = reader.read(node.outputs[0]);
    if (!conditions || conditions->empty() || !can_emit(*conditions)) continue;
    found.emplace_back(node.outputs[0], *std::move(conditions));
  }
  MaskWriter writer(call);
  std::map<std::pair<MaskConditions, size_t>, ValueId> shaped;
  for (auto& [old_mask, conditions] : found) {
    const TensorType type{DType::kBool, call.emit.type(old_mask).shape, {}};
    ARGOSY_TRY(ValueId mask, writer.allowed(conditions));
    ValueId& same = shaped[{conditions, type.shape.size()}];
    if (!same.is_valid()) {
      same = mask;
      for (size_t rank = 3; rank <= type.shape.size(); ++rank) {
        TensorType one_more = call.emit.type(same);
        one_more.shape.insert(one_more.shape.begin(), call.integer(1));
        ARGOSY_TRY(same, call.top(aten::kUnsqueeze, {{"self", same}, {"dim", int64_t{0}}}, std::move(one_more)));
      }
    }
    call.rewriter.replace_uses(old_mask, same);
  }
  return {};
}

Result<int> use_custom_attention(DecoderCall& call, const std::map<uint32_t, CachedKeys>& keys) {
  return AttentionRewriter(call, keys).run();
}

}  // namespace argosy::executorch
