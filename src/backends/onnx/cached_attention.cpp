#include "backends/onnx/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "backends/onnx/attention_inputs.h"
#include "ir/rewriter.h"
#include "passes/aten_builder.h"
#include "passes/pipeline.h"
#include "passes/structures/heads.h"
#include "passes/structures/mask_reader.h"

namespace argosy::onnx {
namespace {

/// Queries, keys and values are [batch, tokens, heads * width]; without keys and values the query holds all three.
/// `mask` [batch, all tokens] is not 0 where there is a token. `cos` and `sin` [positions, turned / 2] turn queries and
/// keys by their tokens' places. A window of 0 is none.
constexpr std::string_view kGroupQueryAttention =
    "onnx::group_query_attention(Tensor query, Tensor? key, Tensor? value, Tensor past_key, Tensor past_value, Tensor "
    "mask, Tensor? cos, Tensor? sin, Tensor? sinks, int heads, int key_heads, float scale, float softcap, int window, "
    "bool pairs) -> (Tensor, Tensor, Tensor)";

constexpr int64_t kWidthStep = 8;                // the op takes only multiples of it
constexpr size_t kPastKey = 3, kPastValue = 4;   // among the inputs of the ONNX op
constexpr int64_t kTakesF32 = 1, kTakesF16 = 2;  // in the pass's settings
constexpr int64_t kLargest = int64_t{1} << 40;   // texts are shorter

/// Keys or values of all tokens: a part that is an input of the graph, and a new one.
struct Joined {
  ValueId past, added, all;
  std::vector<NodeId> readers;  // nodes from `all` to attention, which nothing else reads
};

/// A mask that is causal and hides padding.
struct Mask {
  ValueId padding;     // the input [batch, all tokens] that says where tokens are
  int64_t window = 0;  // 0: none
};

/// What masks of attention of these sizes say.
struct Reader {
  SymExpr sequence, total;
  std::unique_ptr<MaskReader> masks;
};

Argument or_none(ValueId value) { return value.is_valid() ? Argument(value) : Argument(); }

class AttentionFinder {
 public:
  AttentionFinder(Program& program, Component& component, const GroupQueryOptions& options)
      : program_(program),
        component_(component),
        rewriter_(component.graphs.front()),
        options_(options),
        inputs_(program, component, rewriter_, options) {}

  bool run() {
    const std::vector<NodeId> found = attention_nodes(program_, component_);
    // Readers look at the graph as it is before anything changes.
    std::vector<std::optional<Mask>> masks;
    for (NodeId node : found) masks.push_back(mask_of(node));
    bool has_changed = false;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!masks[i]) continue;
      // What cannot be built is left alone.
      Result<bool> done = or_refused([&]() -> Result<bool> { return rewrite(found[i], *masks[i]); });
      has_changed = has_changed || done.value_or(false);
    }
    return has_changed;
  }

 private:
  const argosy::Graph& graph() const { return component_.entry(); }
  const TensorType* tensor(const Argument& argument) const {
    const ValueId* value = argument.get_if<ValueId>();
    return value == nullptr ? nullptr : graph()[*value].tensor();
  }

  /// The input [batch, total] of numbers that says where tokens are; invalid: there is none, or several.
  ValueId padding_input(SymExpr batch, SymExpr total) const {
    ValueId found;
    for (const InputSpec& input : component_.inputs) {
      if (!input.value.is_valid()) continue;
      const TensorType* type = graph()[input.value].tensor();
      bool fits = type != nullptr && type->dtype == DType::kI64 && type->shape == Sizes{batch, total};
      if (fits && found.is_valid()) return {};
      if (fits) found = input.value;
    }
    return found;
  }

  /// Of attention whose mask is causal and hides padding; nullopt: the mask is another one.
  std::optional<Mask> mask_of(NodeId node) {
    const std::vector<Argument>& arguments = graph()[node].arguments;
    const TensorType *query = tensor(arguments[0]), *key = tensor(arguments[1]), *mask = tensor(arguments[3]);
    if (query == nullptr || key == nullptr || mask == nullptr || query->shape.size() != 4 || key->shape.size() != 4)
      return std::nullopt;
    SymExpr sequence = query->shape[2], total = key->shape[2];
    ValueId padding = padding_input(query->shape[0], total);
    if (!padding.is_valid()) return std::nullopt;
    auto reader = std::ranges::find_if(
        readers_, [&](const Reader& each) { return each.sequence == sequence && each.total == total; });
    if (reader == readers_.end()) {
      MaskReader::Call call{.sequence = sequence, .total = total, .largest = kLargest, .padding = padding};
      readers_.push_back({sequence, total, std::make_unique<MaskReader>(program_, component_, call)});
      reader = readers_.end() - 1;
    }
    std::optional<MaskMeaning> meaning = reader->masks->read(std::get<ValueId>(arguments[3].variant()));
    std::optional<int64_t> window = meaning ? window_of(*meaning) : std::nullopt;
    return window ? std::optional(Mask{padding, *window}) : std::nullopt;
  }

  /// The window of a mask that is causal and hides padding; 0: none, nullopt: the mask is another one.
  static std::optional<int64_t> window_of(const MaskMeaning& meaning) {
    if (!meaning.has_padding || !std::ranges::binary_search(meaning.conditions, kCausal)) return std::nullopt;
    if (meaning.conditions.size() == 1) return 0;
    if (meaning.conditions.size() > 2) return std::nullopt;
    const PositionCondition& other = meaning.conditions[meaning.conditions[0] == kCausal ? 1 : 0];
    if (other.key != 1 || other.token != -1 || other.offset < 0) return std::nullopt;
    return other.offset + 1;
  }

  bool is_input(ValueId value) const {
    return std::ranges::any_of(component_.inputs, [&](const InputSpec& input) { return input.value == value; });
  }

  /// The parts of what attention reads as `operand`, if nothing but attention and callers see the whole.
  std::optional<Joined> joined(const AtenBuilder& f, NodeId attention, ValueId operand) const {
    Joined result;
    result.all = before_repeat(f, operand);
    for (ValueId value = operand; value != result.all;) {
      NodeId node = graph()[value].producer;
      if (graph()[value].uses.size() != 1) return std::nullopt;
      result.readers.push_back(node);
      value = AtenBuilder::operand(graph()[node], 0);
    }
    NodeId reader = result.readers.empty() ? attention : result.readers.back();
    bool is_seen = std::ranges::any_of(graph()[result.all].uses,
                                       [&](const Use& use) { return use.node.is_valid() && use.node != reader; });
    const argosy::Node* cat = f.made_by(result.all, "aten.cat.default");
    if (is_seen || cat == nullptr) return std::nullopt;
    const auto* parts = cat->arguments[0].get_if<ValueList>();
    const auto* dim = cat->arguments[1].get_if<int64_t>();
    if (parts == nullptr || parts->size() != 2 || dim == nullptr || *dim != 2 || !is_input((*parts)[0]))
      return std::nullopt;
    result.past = (*parts)[0];
    result.added = (*parts)[1];
    return result;
  }

  bool rewrite(NodeId node, const Mask& mask) {
    rewriter_.insert_before(node);
    RuleContext context{program_, component_, rewriter_, node};
    AtenBuilder f(context);
    bool is_ours = f.op() == "argosy.attention.default";
    if (!is_ours && (f.flag("is_causal") || f.number("dropout_p") != 0.0)) return false;
    std::optional<Joined> keys = joined(f, node, f["key"]), values = joined(f, node, f["value"]);
    if (!keys || !values || keys->all == values->all) return false;
    ValueId query = f["query"];
    const DType dtype = f.dtype(query);
    std::optional<int64_t> heads = f.size(query, 1).as_integer(), key_heads = f.size(keys->all, 1).as_integer(),
                           width = f.size(query, 3).as_integer();
    bool is_taken = (dtype == DType::kF32 && options_.takes_f32) || (dtype == DType::kF16 && options_.takes_f16);
    if (!is_taken || !heads || !key_heads || !width) return false;
    if (*heads % *key_heads != 0 || *width % kWidthStep != 0) return false;
    // Both have the sizes of the query's tokens, and one width.
    for (const Joined& each : {*keys, *values}) {
      bool fits = f.dtype(each.all) == dtype && f.shape(each.added) == Sizes{f.size(query, 0), f.size(keys->all, 1),
                                                                             f.size(query, 2), f.size(query, 3)};
      if (!fits) return false;
    }
    double scale = f.number("scale").value_or(1.0 / std::sqrt(static_cast<double>(*width)));
    AttentionInputs plain{
        .query = merge_heads(f, query), .key = merge_heads(f, keys->added), .value = merge_heads(f, values->added)};
    TensorType attended{dtype, f.shape(plain.query), {}};
    AttentionInputs inputs = inputs_.find(f, node, plain, *width);
    std::vector<ValueId> results = f.nodes(kGroupQueryAttention,
                                           {{"query", inputs.query},
                                            {"key", or_none(inputs.key)},
                                            {"value", or_none(inputs.value)},
                                            {"past_key", keys->past},
                                            {"past_value", values->past},
                                            {"mask", mask.padding},
                                            {"cos", or_none(inputs.cos)},
                                            {"sin", or_none(inputs.sin)},
                                            {"sinks", is_ours ? f.argument("sinks") : Argument()},
                                            {"heads", *heads},
                                            {"key_heads", *key_heads},
                                            {"scale", scale},
                                            {"softcap", is_ours ? *f.number("softcap") : 0.0},
                                            {"window", mask.window},
                                            {"pairs", inputs.pairs}},
                                           {attended, f.type(keys->all), f.type(values->all)});
    f.replace(split_heads(f, results[0], *heads));
    // What callers get of the whole is the op's.
    for (auto [each, result] : {std::pair(&*keys, results[1]), std::pair(&*values, results[2])}) {
      for (NodeId reader : each->readers) rewriter_.erase(reader);
      NodeId cat = graph()[each->all].producer;
      rewriter_.replace_uses(each->all, result);
      rewriter_.erase(cat);
    }
    return true;
  }

  Program& program_;
  Component& component_;
  Rewriter rewriter_;
  const GroupQueryOptions& options_;
  AttentionInputFinder inputs_;
  std::vector<Reader> readers_;
};

}  // namespace

Pass use_group_query_attention(const GroupQueryOptions& options) {
  return {"use-group-query-attention",
          [options](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) {
              if (AttentionFinder(program, component, options).run()) has_changed = true;
            }
            return has_changed;
          },
          settings_text({{"positions", options.longest_text},
                         {"joins", options.joins_weights ? 1 : 0},
                         {"types", (options.takes_f32 ? kTakesF32 : 0) + (options.takes_f16 ? kTakesF16 : 0)},
                         {"packs", options.packs ? 1 : 0}})};
}

Result<Pass> use_group_query_attention_with(std::string_view settings) {
  ARGOSY_TRY(auto numbers, parse_settings(settings));
  GroupQueryOptions options;
  if (numbers.contains("positions")) options.longest_text = numbers.at("positions");
  options.joins_weights = numbers.contains("joins") && numbers.at("joins") != 0;
  if (numbers.contains("types")) {
    options.takes_f32 = (numbers.at("types") & kTakesF32) != 0;
    options.takes_f16 = (numbers.at("types") & kTakesF16) != 0;
  }
  if (numbers.contains("packs")) options.packs = numbers.at("packs") != 0;
  return use_group_query_attention(options);
}

size_t count_kept_caches(const Model& model) {
  std::set<Ref> kept, others;
  for (const Graph& graph : model.graphs) {
    others.insert(graph.outputs.begin(), graph.outputs.end());
    for (const Node& node : graph.nodes) {
      bool is_attention = node.domain == "com.microsoft" && node.op == "GroupQueryAttention";
      for (size_t i = 0; i < node.inputs.size(); ++i)
        (is_attention && (i == kPastKey || i == kPastValue) ? kept : others).insert(node.inputs[i]);
    }
  }
  return static_cast<size_t>(std::ranges::count_if(
      model.graphs[0].inputs, [&](Ref input) { return kept.contains(input) && !others.contains(input); }));
}

}  // namespace argosy::onnx
