#include "backends/executorch/generation/decoder.h"

#include <algorithm>
#include <limits>
#include <set>

#include "backends/executorch/generation/attention.h"
#include "backends/executorch/generation/caches.h"
#include "backends/executorch/generation/decoder_call.h"
#include "backends/executorch/generation/specialise.h"
#include "base/text.h"
#include "border/border.h"
#include "border/logits.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kTokenInputs[] = {"input_ids", "decoder_input_ids", "inputs_embeds"};
constexpr std::string_view kEncoderStates = "encoder_hidden_states";

std::set<std::string> symbols_of(const TensorType& type) {
  std::set<std::string> names;
  for (SymExpr size : type.shape) {
    if (size.kind() == SymKind::kSymbol) names.emplace(size.symbol_name());
  }
  return names;
}

class DecoderBinder {
 public:
  DecoderBinder(Program& program, Component& component, const TaskOptions& options, const MediaTokens& media)
      : program_(program), component_(component), options_(options), media_(media) {}

  Status bind() {
    ARGOSY_TRY(std::vector<CacheState> states, read_cache_states(component_));
    ARGOSY_TRY_STATUS(find_tokens());
    ARGOSY_TRY_STATUS(fix_sizes(states));
    DecoderCall call(program_, component_, tokens_, sequence_, total_, options_.max_seq_len);
    if (media_.type) {
      ValueId types = take_type_column(call);
      ARGOSY_TRY(token_types_, keep_row(call, std::string(kTokenTypes), types));
    }
    bind_inputs(call, states);
    simplify_masks(call);
    ARGOSY_TRY(auto keys, keep_states(call, states, options_.custom_kv_cache));
    if (options_.custom_sdpa) use_custom_attention(call, keys);
    ARGOSY_TRY_STATUS(bind_logits(call));
    order_inputs(call);
    component_.dim_names = {};
    if (sequence_.kind() == SymKind::kSymbol) component_.dim_names[std::string(sequence_.symbol_name())] = "sequence";
    component_.dim_names[std::string(total_.symbol_name())] = "total_sequence";
    if (encoder_.is_valid()) component_.dim_names[std::string(encoder_.symbol_name())] = "encoder_sequence";
    return {};
  }

 private:
  Status find_tokens() {
    for (std::string_view name : kTokenInputs) {
      const InputSpec* input = find_input(component_, name);
      if (input == nullptr || !input->value.is_valid()) continue;
      const TensorType* type = component_.entry()[input->value].tensor();
      if (type == nullptr || type->shape.size() < 2) continue;
      token_input_ = name;
      tokens_ = input->value;
      return {};
    }
    return fail(ErrorCode::kUnsupportedFeature, format("component {} is not given tokens", component_.name));
  }

  Status fix_sizes(const std::vector<CacheState>& states) {
    SymContext& symbols = *component_.symbols;
    const Graph& graph = component_.entry();
    const TensorType tokens = *graph[tokens_].tensor();
    std::map<std::string, SymExpr> replacements;
    if (tokens.shape[1].kind() != SymKind::kSymbol)
      return fail(ErrorCode::kUnsupportedFeature, "the capture fixed how many tokens a call has");
    std::string batch(tokens.shape[0].symbol_name());
    if (!batch.empty()) replacements[batch] = symbols.integer(1);
    sequence_ = tokens.shape[1];
    total_ = new_symbol(component_, "total", {.is_integer = true, .is_positive = true});
    if (!symbols.set_range(total_, {1, options_.max_seq_len})) return no_range();
    std::string sequence_name(sequence_.symbol_name());
    if (options_.dynamic_shapes) {
      SymRange range = symbols.range(sequence_);
      if (!symbols.set_range(sequence_, {std::max<int64_t>(range.min, 1), std::min(range.max, options_.max_seq_len)}))
        return no_range();
    } else {
      sequence_ = replacements[sequence_name] = symbols.integer(1);
    }
    if (const InputSpec* hidden = find_input(component_, kEncoderStates);
        hidden != nullptr && hidden->value.is_valid()) {
      const TensorType* type = graph[hidden->value].tensor();
      if (type != nullptr && type->shape.size() == 3 && type->shape[1].kind() == SymKind::kSymbol)
        encoder_ = type->shape[1];
    }
    // All other sizes that vary are the number of past tokens, or of all tokens.
    SymExpr past = symbols.sub(total_, sequence_);
    for (const CacheState& state : states) {
      const InputSpec* input = find_input(component_, state.input);
      if (input == nullptr || !input->value.is_valid()) continue;
      for (const std::string& name : symbols_of(*graph[input->value].tensor())) {
        if (name != batch && name != sequence_name) replacements.emplace(name, past);
      }
    }
    for (const InputSpec& input : component_.inputs) {
      if (!input.value.is_valid() || graph[input.value].tensor() == nullptr) continue;
      for (const std::string& name : symbols_of(*graph[input.value].tensor())) {
        if (name != batch && name != sequence_name && (!encoder_.is_valid() || name != encoder_.symbol_name()))
          replacements.emplace(name, total_);
      }
    }
    specialise(component_, replacements);
    return {};
  }

  Status no_range() const {
    return fail(ErrorCode::kInvalidInput, format("{} tokens are too few for this model", options_.max_seq_len),
                "give --max_seq_len a larger number");
  }

  /// Replaces sizes of inputs that are removed by numbers of the call.
  void replace_sizes(DecoderCall& call, ValueId input) {
    const std::vector<Use> uses = call.graph()[input].uses;
    for (const Use& use : uses) {
      if (!use.node.is_valid()) continue;
      const Node& node = call.graph()[use.node];
      if (program_.schemas[node.op].name != "aten.sym_size.int") continue;
      SymExpr size = call.graph()[node.outputs[0]].number()->expression;
      ValueId number = size == call.past()     ? call.start
                       : size == call.total    ? call.end
                       : size == call.sequence ? call.length
                                               : ValueId{};
      if (number.is_valid()) call.rewriter.replace_uses(node.outputs[0], number);
      if (call.graph()[node.outputs[0]].uses.empty()) call.rewriter.erase(use.node);
    }
  }

  void bind_inputs(DecoderCall& call, const std::vector<CacheState>& states) {
    std::vector<std::string> names;
    for (const InputSpec& input : component_.inputs) names.push_back(input.name);
    for (const std::string& name : names) {
      const InputSpec input = *find_input(component_, name);
      if (!input.value.is_valid()) {
        erase_spec(name);
        continue;
      }
      if (input.value == tokens_ || name == kEncoderStates) continue;
      replace_sizes(call, input.value);
      if (std::ranges::find(states, name, &CacheState::input) != states.end()) continue;
      bind_input(call, name, input.value);
      call.rewriter.erase_input(input.value);
      erase_spec(name);
    }
  }

  void erase_spec(const std::string& name) {
    std::erase_if(component_.inputs, [&](const InputSpec& spec) { return spec.name == name; });
  }

  void bind_input(DecoderCall& call, const std::string& name, ValueId value) {
    if (call.graph()[value].uses.empty()) return;
    const TensorType* found = call.graph()[value].tensor();
    if (found == nullptr || !is_integer(found->dtype)) cannot_bind(name);
    const TensorType type{found->dtype, found->shape, {}};
    ValueId bound;
    if (name == "position_ids") {
      // Several rows of positions are for pictures: heights and widths.
      if (media_.kinds > 0 && type.shape.size() > 2) cannot_bind(name);
      bound = positions_as(call, type.shape);
    } else if (name == "cache_position") {
      bound = call.positions;
    } else if (name == "attention_mask" || name == "decoder_attention_mask" || name == "encoder_attention_mask") {
      bound = filled(call, type, 1);
    } else if (name == kTokenTypes && token_types_.is_valid()) {
      if (type.shape != call.type(token_types_).shape) cannot_bind(name);
      bound = token_types_;
    } else if (name == kTokenTypes) {
      bound = filled(call, type, 0);
    } else {
      cannot_bind(name);
    }
    call.rewriter.replace_uses(value, call.top().cast(bound, type.dtype));
  }

  static bool is_integer(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kBool; }

  [[noreturn]] void cannot_bind(const std::string& name) const {
    AtenBuilder::refuse(format("the model's {} is given {}, which runners do not pass", component_.name, name),
                        "export it without a task; callers then pass everything that it is given");
  }

  ValueId positions_as(DecoderCall& call, const Sizes& shape) {
    if (shape.back() != call.sequence) cannot_bind("position_ids");
    ValueId positions = call.positions;
    for (size_t rank = 2; rank <= shape.size(); ++rank) positions = call.top().unsqueeze(positions, 0);
    return call.top().expand(positions, shape);
  }

  /// Its sizes are those of the call, or of the encoder's result.
  ValueId filled(DecoderCall& call, const TensorType& type, int64_t value) {
    std::vector<ValueId> from;
    if (encoder_.is_valid()) from.push_back(find_input(component_, kEncoderStates)->value);
    return call.top().full(type.shape, value, type.dtype, from);
  }

  /// Samplers look at the last token alone: what computes logits is given that one only.
  Status bind_logits(DecoderCall& call) {
    std::vector<std::string> names = {"logits"};
    ARGOSY_TRY_STATUS(keep_outputs(component_, names));
    if (options_.all_logits || !options_.dynamic_shapes) return {};
    const ValueId* logits = call.graph().outputs().back().get_if<ValueId>();
    for (size_t i = 0; i < component_.outputs.size(); ++i) {
      if (component_.outputs[i].name == "logits") logits = call.graph().outputs()[i].get_if<ValueId>();
    }
    if (logits == nullptr || call.type(*logits).shape.size() != 3 || call.type(*logits).shape[1] != call.sequence) {
      return {};
    }
    TokenNodes nodes = token_nodes(call, *logits);
    cut_tokens(call, "logits", nodes, [&](AtenBuilder& f) {
      return f.slice_between(nodes.source, 1, int64_t{-1}, std::numeric_limits<int64_t>::max(), f.one());
    });
    return {};
  }

  void order_inputs(DecoderCall& call) {
    std::vector<InputSpec> inputs;
    for (std::string_view name : {token_input_, kEncoderStates}) {
      if (const InputSpec* input = find_input(component_, name)) inputs.push_back(*input);
    }
    inputs.push_back({std::string(DecoderCall::kPositions), call.positions, {}});
    component_.inputs = std::move(inputs);
  }

  Program& program_;
  Component& component_;
  const TaskOptions& options_;
  const MediaTokens& media_;
  ValueId token_types_;  // of all tokens, if the decoder takes them
  std::string_view token_input_;
  ValueId tokens_;
  SymExpr sequence_, total_, encoder_;
};

}  // namespace

Status bind_decoder(Program& program, Component& component, const TaskOptions& options, const MediaTokens& media) {
  return DecoderBinder(program, component, options, media).bind();
}

}  // namespace argosy::executorch
