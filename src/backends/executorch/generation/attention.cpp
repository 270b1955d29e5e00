#include "backends/executorch/generation/attention.h"

#include <algorithm>
#include <limits>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/heads.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kCustomSdpa =
    "llama::custom_sdpa(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float "
    "drpout_p=0.0, bool is_causal=False, float? scale=None) -> Tensor";

MaskReader::Call mask_call(const DecoderCall& call) {
  return {.sequence = call.sequence, .total = call.total, .largest = call.largest, .positions = call.positions};
}

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
  ValueId allowed(const MaskConditions& conditions) {
    ValueId& result = allowed_[conditions];
    if (result.is_valid()) return result;
    for (const PositionCondition& condition : conditions) {
      ValueId one = compare(condition);
      result = result.is_valid() ? call_.top().bitwise_and(result, one) : one;
    }
    return result;
  }

  /// f32 [sequence, total], zero where allowed. Finite elsewhere: a row of infinities has no largest value.
  ValueId added(const MaskConditions& conditions) {
    ValueId& result = added_[conditions];
    if (result.is_valid()) return result;
    ValueId condition = allowed(conditions), zero = call_.top().full({call_.integer(1)}, 0.0, DType::kF32, {});
    result = call_.top().node(aten::kWhereScalarOther,
                              {{"condition", condition},
                               {"self", zero},
                               {"other", static_cast<double>(std::numeric_limits<float>::lowest())}},
                              DType::kF32, {call_.sequence, call_.total});
    return result;
  }

 private:
  ValueId compare(const PositionCondition& condition) {
    AtenBuilder& f = call_.top();
    if (!keys_.is_valid()) {
      keys_ = f.unsqueeze(f.arange(call_.total, DType::kI64, {}), 0);
      tokens_ = f.unsqueeze(call_.positions, 1);
    }
    bool is_upper = condition.key < 0;  // k <= p + offset, or k >= p - offset
    ValueId tokens = f.add_integer(tokens_, is_upper ? condition.offset : -condition.offset);
    return f.compare(is_upper ? "le" : "ge", keys_, tokens);
  }

  DecoderCall& call_;
  ValueId keys_, tokens_;  // positions [1, total] and [sequence, 1]
  std::map<MaskConditions, ValueId> allowed_, added_;
};

class AttentionRewriter {
 public:
  AttentionRewriter(DecoderCall& call, const std::map<uint32_t, CachedKeys>& keys)
      : call_(call), keys_(keys), masks_(call.program, call.component, mask_call(call)), writer_(call) {}

  void run() {
    for (NodeId node : call_.graph().nodes()) {
      if (!call_.graph().is_live(node)) continue;
      if (call_.program.schemas[call_.graph()[node].op].name != "aten.scaled_dot_product_attention.default") continue;
      rewrite(node);
    }
  }

 private:
  /// [1, total or more, heads, size].
  ValueId operand(AtenBuilder& f, ValueId read, const CachedKeys& kept, bool is_cut) {
    if (!kept.has_heads_last) return call_.swap_middle(read);
    return is_cut ? f.slice(kept.cache, 1, 0, call_.total) : kept.cache;
  }

  /// Returns without a change where the kernel does not compute the same.
  void rewrite(NodeId node) {
    const std::vector<Argument> arguments = call_.graph()[node].arguments;
    if (arguments.size() < 7) return;
    ValueId query = std::get<ValueId>(arguments[0].variant());
    ValueId key = before_repeat(call_.look(), std::get<ValueId>(arguments[1].variant()));
    ValueId value = before_repeat(call_.look(), std::get<ValueId>(arguments[2].variant()));
    auto kept_key = keys_.find(key.index), kept_value = keys_.find(value.index);
    if (kept_key == keys_.end() || kept_value == keys_.end()) return;
    const TensorType query_type = call_.type(query);
    const std::vector<SymExpr>& shape = query_type.shape;
    if (shape.size() != 4 || shape[2] != call_.sequence || shape[3] != call_.type(key).shape[3] ||
        shape[3] != call_.type(value).shape[3]) {
      return;
    }
    if (query_type.dtype != call_.type(key).dtype || query_type.dtype != call_.type(value).dtype) return;
    const auto* dropout = arguments[4].get_if<double>();
    const auto* is_causal_argument = arguments[5].get_if<bool>();
    if (dropout == nullptr || *dropout != 0 || is_causal_argument == nullptr || *is_causal_argument) return;

    bool is_causal = false;
    ValueId mask;
    if (const ValueId* given = arguments[3].get_if<ValueId>()) {
      auto meaning = masks_.read(*given);
      if (!meaning) return;
      const MaskConditions& conditions = meaning->conditions;
      if (conditions == MaskConditions{kCausal}) {
        is_causal = true;
      } else if (!conditions.empty()) {
        if (!can_emit(conditions)) return;
        mask = writer_.added(conditions);
      }
    }
    AtenBuilder& f = call_.before(node);
    ValueId swapped = call_.swap_middle(query);
    ValueId all_keys = operand(f, key, kept_key->second, mask.is_valid());
    ValueId all_values = operand(f, value, kept_value->second, mask.is_valid());
    std::vector<AtenBuilder::Named> named = {{"query", swapped},       {"key", all_keys},
                                             {"value", all_values},    {"start_pos", call_.start},
                                             {"is_causal", is_causal}, {"scale", arguments[6]}};
    if (mask.is_valid()) named.emplace_back("attn_mask", mask);
    replace(node, f.node(kCustomSdpa, std::move(named), query_type.dtype, f.shape(swapped)));
  }

  /// The kernel's result has heads behind tokens, as models swap them next: such swaps are dropped.
  void replace(NodeId node, ValueId result) {
    ValueId old_result = call_.graph()[node].outputs[0];
    std::vector<NodeId> swaps;
    for (const Use& use : call_.graph()[old_result].uses) {
      if (use.node.is_valid() && is_middle_swap(call_.program, call_.graph()[use.node])) swaps.push_back(use.node);
    }
    for (NodeId swap : swaps) call_.rewriter.replace(swap, std::vector<ValueId>{result});
    if (!call_.graph()[old_result].uses.empty()) {
      call_.rewriter.replace_uses(old_result, call_.swap_middle(result));
    }
    call_.rewriter.erase(node);
  }

  DecoderCall& call_;
  const std::map<uint32_t, CachedKeys>& keys_;
  MaskReader masks_;
  MaskWriter writer_;
};

}  // namespace

void simplify_masks(DecoderCall& call) {
  MaskReader reader(call.program, call.component, mask_call(call));
  std::vector<std::pair<ValueId, MaskConditions>> found;
  for (NodeId id : call.graph().nodes()) {
    const Node& node = call.graph()[id];
    if (node.outputs.size() != 1) continue;
    const TensorType* type = call.graph()[node.outputs[0]].tensor();
    if (type == nullptr || type->dtype != DType::kBool || type->shape.size() < 2) continue;
    if (type->shape.back() != call.total || type->shape[type->shape.size() - 2] != call.sequence) continue;
    auto meaning = reader.read(node.outputs[0]);
    if (!meaning || meaning->conditions.empty() || !can_emit(meaning->conditions)) continue;
    found.emplace_back(node.outputs[0], std::move(meaning->conditions));
  }
  MaskWriter writer(call);
  std::map<std::pair<MaskConditions, size_t>, ValueId> shaped;
  for (auto& [old_mask, conditions] : found) {
    const size_t rank = call.type(old_mask).shape.size();
    ValueId mask = writer.allowed(conditions);
    ValueId& same = shaped[{conditions, rank}];
    if (!same.is_valid()) {
      same = mask;
      for (size_t i = 2; i < rank; ++i) same = call.top().unsqueeze(same, 0);
    }
    call.rewriter.replace_uses(old_mask, same);
  }
}

void use_custom_attention(DecoderCall& call, const std::map<uint32_t, CachedKeys>& keys) {
  AttentionRewriter(call, keys).run();
}

}  // namespace argosy::executorch
