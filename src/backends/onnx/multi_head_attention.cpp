#include "backends/onnx/multi_head_attention.h"

#include <array>
#include <cmath>
#include <memory>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/heads.h"
#include "passes/structures/mask_reader.h"

namespace argosy::onnx {
namespace {

/// Queries, keys and values are [batch, tokens, heads * width]; `bias` [width of all three] is added to them. `mask`
/// broadcasts to [batch, heads, queries, keys] and says where a query may look, or is added to scores. A query that may
/// look nowhere gives 0.
constexpr std::string_view kMultiHeadAttention =
    "onnx::multi_head_attention(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? mask, int heads, float "
    "scale, bool causal) -> Tensor";

constexpr int64_t kLongest = int64_t{1} << 40;  // texts are shorter
constexpr size_t kHeadRank = 4;

/// Queries, keys or values before they were split to heads.
struct Projected {
  ValueId tensor;         // [batch, tokens, heads * width], or the same with heads as a dim; invalid: something else
  double factor = 1;      // that it was multiplied with before it was split
  bool is_alone = false;  // nothing but attention reads it
};

class MultiHeadFinder {
 public:
  MultiHeadFinder(Program& program, Component& component)
      : program_(program), component_(component), rewriter_(component.graphs.front()) {}

  bool run() {
    const std::vector<NodeId> found = attention_nodes(program_, component_);
    // Masks are read in the graph as it is before anything changes.
    std::vector<bool> has_mask;
    has_mask.reserve(found.size());
    for (NodeId node : found) has_mask.push_back(hides_something(node));
    bool has_changed = false;
    for (size_t i = 0; i < found.size(); ++i) {
      // What cannot be built is left alone.
      Result<bool> done = or_refused([&]() -> Result<bool> { return rewrite(found[i], has_mask[i]); });
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

  /// Whether attention has a mask, and it may hide a key. Layers share masks: what was read last is remembered.
  bool hides_something(NodeId node) {
    const std::vector<Argument>& arguments = graph()[node].arguments;
    const TensorType *query = tensor(arguments[0]), *key = tensor(arguments[1]), *mask = tensor(arguments[3]);
    if (mask == nullptr) return false;
    if (query == nullptr || key == nullptr || query->shape.size() != kHeadRank || key->shape.size() != kHeadRank)
      return true;
    MaskReader::Call call{.sequence = query->shape[2], .total = key->shape[2], .largest = kLongest};
    if (!reader_ || call.sequence != call_.sequence || call.total != call_.total) {
      call_ = call;
      reader_ = std::make_unique<MaskReader>(program_, component_, call);
    }
    return !reader_->hides_nothing(std::get<ValueId>(arguments[3].variant()));
  }

  /// What was split to heads, [batch, heads, tokens, width].
  Projected projected(const AtenBuilder& f, ValueId heads) const {
    Projected result;
    const argosy::Node* swapped = f.made_by(heads, "aten.permute.default");
    if (swapped == nullptr || numbers(swapped->arguments[1]) != kHeadsAndTokens) return result;
    result.tensor = AtenBuilder::operand(*swapped, 0);
    result.is_alone = is_read_once(heads) && is_read_once(result.tensor);
    const argosy::Node* split = f.made_by(result.tensor, "aten.reshape.default");
    if (split == nullptr) return result;
    const argosy::Sizes& shape = f.shape(result.tensor);
    ValueId merged = AtenBuilder::operand(*split, 0);
    if (f.shape(merged) != argosy::Sizes{shape[0], shape[1], f.symbols().mul(shape[2], shape[3])}) return result;
    result.tensor = merged;
    result.is_alone = result.is_alone && is_read_once(merged);
    const argosy::Node* scaled = f.made_by(merged, "aten.mul.Scalar");
    const double* factor = scaled == nullptr ? nullptr : scaled->arguments[1].get_if<double>();
    if (factor == nullptr || *factor == 0) return result;
    result.factor = *factor;
    result.tensor = AtenBuilder::operand(*scaled, 0);
    result.is_alone = result.is_alone && is_read_once(result.tensor);
    return result;
  }

  bool is_read_once(ValueId value) const { return graph()[value].uses.size() == 1; }

  /// Whether the op broadcasts a mask to [batch, heads, queries, keys].
  static bool fits(const argosy::Sizes& mask, const argosy::Sizes& scores) {
    if (mask.size() > scores.size()) return false;
    for (size_t i = 0; i < mask.size(); ++i) {
      SymExpr size = mask[mask.size() - 1 - i];
      if (size.as_integer() != 1 && size != scores[scores.size() - 1 - i]) return false;
    }
    return true;
  }

  /// The bias of a projection, a weight of the graph; invalid: it has none, or that is no projection.
  ValueId bias_of(const AtenBuilder& f, ValueId projection) const {
    const argosy::Node* linear = f.made_by(projection, "aten.linear.default");
    const ValueId* bias = linear == nullptr ? nullptr : linear->arguments[2].get_if<ValueId>();
    return bias != nullptr && graph()[*bias].weight.is_valid() ? *bias : ValueId();
  }

  /// Moves the biases of three projections into one, which ONNX Runtime joins when it loads the graph.
  Argument take_biases(AtenBuilder& f, std::array<Projected*, 3> parts) const {
    size_t count = 0;
    for (const Projected* part : parts) {
      const argosy::Node* linear = f.made_by(part->tensor, "aten.linear.default");
      if (linear == nullptr || !part->is_alone) return {};
      bool has_bias = bias_of(f, part->tensor).is_valid();
      if (!has_bias && !linear->arguments[2].is<None>()) return {};
      count += has_bias ? 1 : 0;
    }
    if (count == 0) return {};
    std::vector<ValueId> biases;
    for (Projected* part : parts) {
      const TensorType type = f.type(part->tensor);
      const argosy::Node* linear = f.made_by(part->tensor, "aten.linear.default");
      ValueId x = AtenBuilder::operand(*linear, 0), weight = AtenBuilder::operand(*linear, 1);
      ValueId bias = bias_of(f, part->tensor);
      biases.push_back(bias.is_valid() ? bias : f.full({type.shape.back()}, 0.0, type.dtype, {}));
      if (bias.is_valid())
        part->tensor = f.node(aten::kLinear, {{"input", x}, {"weight", weight}}, type.dtype, type.shape);
    }
    return f.cat(biases, 0);
  }

  bool rewrite(NodeId node, bool has_mask) {
    rewriter_.insert_before(node);
    RuleContext context{program_, component_, rewriter_, node};
    AtenBuilder f(context);
    bool is_ours = f.op() == "argosy.attention.default", is_causal = !is_ours && f.flag("is_causal");
    if (is_ours ? f.has("sinks") || f.number("softcap") != 0.0 : f.number("dropout_p") != 0.0) return false;
    ValueId heads_of_query = f["query"], heads_of_key = f["key"], heads_of_value = f["value"];
    for (ValueId each : {heads_of_query, heads_of_key, heads_of_value}) {
      if (f.rank(each) != kHeadRank || f.dtype(each) != DType::kF32) return false;
    }
    const argosy::Sizes query = f.shape(heads_of_query), key = f.shape(heads_of_key), value = f.shape(heads_of_value);
    std::optional<int64_t> heads = query[1].as_integer(), width = query[3].as_integer();
    bool fits_together = heads && width && key == argosy::Sizes{query[0], query[1], key[2], query[3]} &&
                         value == argosy::Sizes{query[0], query[1], key[2], value[3]} && value[3].as_integer();
    if (!fits_together || (is_causal && query[2] != key[2])) return false;
    const Argument mask = has_mask ? f.argument(is_ours ? "mask" : "attn_mask") : Argument();
    if (has_mask && !fits(f.shape(std::get<ValueId>(mask.variant())), {query[0], query[1], query[2], key[2]}))
      return false;
    Projected q = projected(f, heads_of_query), k = projected(f, heads_of_key), v = projected(f, heads_of_value);
    if (!q.tensor.is_valid() || !k.tensor.is_valid() || !v.tensor.is_valid() || v.factor != 1) return false;
    double scale = f.number("scale").value_or(1.0 / std::sqrt(static_cast<double>(*width))) * q.factor * k.factor;
    if (scale == 0) return false;  // stands for the default
    for (Projected* part : {&q, &k, &v}) {
      const argosy::Sizes shape = f.shape(part->tensor);
      if (shape.size() == kHeadRank)
        part->tensor = f.reshape(part->tensor, {shape[0], shape[1], f.symbols().mul(shape[2], shape[3])});
    }
    Argument bias = take_biases(f, {&q, &k, &v});
    ValueId attended = f.node(kMultiHeadAttention,
                              {{"query", q.tensor},
                               {"key", k.tensor},
                               {"value", v.tensor},
                               {"bias", std::move(bias)},
                               {"mask", mask},
                               {"heads", *heads},
                               {"scale", scale},
                               {"causal", is_causal}},
                              DType::kF32, {query[0], query[2], f.symbols().mul(query[1], value[3])});
    return f.replace(split_heads(f, attended, *heads));
  }

  Program& program_;
  Component& component_;
  Rewriter rewriter_;
  MaskReader::Call call_;
  std::unique_ptr<MaskReader> reader_;
};

}  // namespace

Pass use_multi_head_attention() {
  return {"use-multi-head-attention",
          [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) {
              if (MultiHeadFinder(program, component).run()) has_changed = true;
            }
            return has_changed;
          },
          {}};
}

}  // namespace argosy::onnx
