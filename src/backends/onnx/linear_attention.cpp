#include "backends/onnx/linear_attention.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>

#include "passes/aten_builder.h"
#include "passes/eliminate_dead_code.h"
#include "passes/rewrite_rules.h"

// A step of such a scan, for one head with a state S [keys, values]:
//   S = decay * S + key (x) written,  output = query^T S
// where `written` is the value, or with the delta rule beta * (value - (decay * S)^T key). Products with S are
// sums or matmul. A state that is kept as [values, keys] (Mamba 2) stays a scan: to turn it for the op and back takes
// longer, for a token, than the step.

namespace argosy::onnx {
namespace {

/// Queries and keys are [batch, tokens, heads * keys], values and results [batch, tokens, heads * values], the state
/// [batch, heads, keys, values], logarithms of decays [batch, tokens, heads] or [batch, tokens, heads * keys].
constexpr std::string_view kLinearAttention =
    "onnx::linear_attention(Tensor query, Tensor key, Tensor value, Tensor state, Tensor decay, Tensor? beta, int "
    "heads) "
    "-> (Tensor, Tensor)";

/// What the inputs of a step are: values of the scan's own graph; `beta` is invalid without the delta rule.
struct Step {
  ValueId state, query, key, value, decay, beta;
};

/// Reads the graph of a step.
class StepReader {
 public:
  explicit StepReader(const AtenBuilder& f) : f_(f) {}

  /// What the new state and the output are computed from; nullopt: in another way.
  std::optional<Step> read(ValueId new_state, ValueId output) const {
    if (f_.rank(new_state) != 4) return std::nullopt;
    Step step;
    const argosy::Node* sum = f_.made_by(new_state, "aten.add.Tensor");
    if (!AtenBuilder::adds_as_is(sum)) return std::nullopt;
    for (size_t i : {size_t{0}, size_t{1}}) {
      ValueId decayed = AtenBuilder::operand(*sum, i), written = AtenBuilder::operand(*sum, 1 - i);
      if (read_decayed(decayed, step) && read_written(written, decayed, step)) {
        step.query = read_with(output, new_state);
        return step.query.is_valid() ? std::optional(step) : std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  bool is_input(ValueId value) const { return value.is_valid() && !f_.graph()[value].producer.is_valid(); }

  /// The tensor that got a new dim; invalid: none did.
  ValueId spread(ValueId tensor, size_t dim) const {
    const argosy::Node* node = f_.made_by(tensor, "aten.unsqueeze.default");
    const auto* at = node == nullptr ? nullptr : node->arguments[1].get_if<int64_t>();
    return at != nullptr && wrap_dim(*at, f_.rank(tensor)) == dim ? AtenBuilder::operand(*node, 0) : ValueId();
  }

  /// decay * S. The decay is [batch, heads, 1 or keys], or of all tokens [heads, 1, 1].
  bool read_decayed(ValueId tensor, Step& step) const {
    const argosy::Node* product = f_.made_by(tensor, "aten.mul.Tensor");
    if (product == nullptr) return false;
    for (size_t i : {size_t{0}, size_t{1}}) {
      ValueId state = AtenBuilder::operand(*product, i), factor = AtenBuilder::operand(*product, 1 - i);
      if (!is_input(state) || f_.rank(state) != 4) continue;
      ValueId decay = is_input(factor) && f_.rank(factor) == 3 ? factor : spread(factor, 3);
      if (!is_input(decay)) continue;
      step.state = state;
      step.decay = decay;
      return true;
    }
    return false;
  }

  /// S^T x, summed over keys: what x is; invalid: something else is computed.
  ValueId read_with(ValueId tensor, ValueId state) const {
    if (f_.rank(tensor) != 3) return {};
    ValueId x = read_sum(tensor, state);
    if (!x.is_valid()) x = read_matmul(tensor, state);
    return is_input(x) ? x : ValueId();
  }

  ValueId read_sum(ValueId tensor, ValueId state) const {
    const argosy::Node* sum = f_.made_by(tensor, "aten.sum.dim_IntList");
    const argosy::Node* product = f_.made_by(sum, 0, "aten.mul.Tensor");
    if (product == nullptr) return {};
    std::optional<std::vector<int64_t>> dims = numbers(sum->arguments[1]);
    if (!dims || dims->size() != 1 || wrap_dim((*dims)[0], 4) != kKeys) return {};
    for (size_t i : {size_t{0}, size_t{1}}) {
      if (AtenBuilder::operand(*product, i) == state) return spread(AtenBuilder::operand(*product, 1 - i), kValues);
    }
    return {};
  }

  /// The same as a product of matrices: x is a row before the state.
  ValueId read_matmul(ValueId tensor, ValueId state) const {
    const argosy::Node* squeeze = f_.made_by(tensor, "aten.squeeze.dims");
    const argosy::Node* product = f_.made_by(squeeze, 0, "aten.matmul.default");
    if (product == nullptr || AtenBuilder::operand(*product, 1) != state) return {};
    std::optional<std::vector<int64_t>> dims = numbers(squeeze->arguments[1]);
    if (!dims || dims->size() != 1 || wrap_dim((*dims)[0], 4) != kKeys) return {};
    return spread(AtenBuilder::operand(*product, 0), kKeys);
  }

  /// key (x) written.
  bool read_written(ValueId tensor, ValueId decayed, Step& step) const {
    const argosy::Node* product = f_.made_by(tensor, "aten.mul.Tensor");
    if (product == nullptr) return false;
    for (size_t i : {size_t{0}, size_t{1}}) {
      ValueId key = spread(AtenBuilder::operand(*product, i), kValues),
              written = spread(AtenBuilder::operand(*product, 1 - i), kKeys);
      if (!is_input(key) || !written.is_valid()) continue;
      step.key = key;
      if (!is_input(written)) return read_delta(written, decayed, step);
      step.value = written;
      return true;
    }
    return false;
  }

  /// beta * (value - (decay * S)^T key).
  bool read_delta(ValueId tensor, ValueId decayed, Step& step) const {
    const argosy::Node* product = f_.made_by(tensor, "aten.mul.Tensor");
    if (product == nullptr) return false;
    for (size_t i : {size_t{0}, size_t{1}}) {
      const argosy::Node* difference = f_.made_by(product, i, "aten.sub.Tensor");
      ValueId beta = spread(AtenBuilder::operand(*product, 1 - i), 2);
      if (!AtenBuilder::adds_as_is(difference) || !beta.is_valid() || !is_input(beta)) continue;
      step.beta = beta;
      step.value = AtenBuilder::operand(*difference, 0);
      return is_input(step.value) && read_with(AtenBuilder::operand(*difference, 1), decayed) == step.key;
    }
    return false;
  }

  const AtenBuilder& f_;
  static constexpr size_t kKeys = 2, kValues = 3;  // dims of the state
};

/// [tokens, batch, heads, …] as [batch, tokens, the rest in one].
ValueId packed(AtenBuilder& f, ValueId tensor) {
  std::vector<int64_t> order = {1, 0};
  Sizes shape = {f.size(tensor, 1), f.size(tensor, 0), f.size(tensor, 2)};
  for (size_t i = 2; i < f.rank(tensor); ++i) {
    order.push_back(static_cast<int64_t>(i));
    if (i > 2) shape[2] = f.symbols().mul(shape[2], f.shape(tensor)[i]);
  }
  return f.reshape(f.permute(tensor, order), std::move(shape));
}

class Scan {
 public:
  Scan(AtenBuilder& f, const argosy::Graph& body) : f_(f), body_(body) {}

  bool replace(const Step& step) {
    std::optional<ValueId> state = given(step.state), query = given(step.query), key = given(step.key),
                           value = given(step.value), decay = given(step.decay);
    std::optional<ValueId> beta = step.beta.is_valid() ? given(step.beta) : std::nullopt;
    if (!state || !query || !key || !value || !decay || (step.beta.is_valid() && !beta)) return false;
    std::optional<int64_t> heads = f_.size(*state, 1).as_integer();
    if (!heads || f_.rank(*key) != 4) return false;
    const Sizes keys = {f_.size(*key, 0), f_.size(*state, 0), f_.size(*state, 1), f_.size(*state, 2)};
    Sizes values = keys, one = keys;
    values[3] = f_.size(*state, 3);
    one[3] = f_.one();
    const Sizes each = {keys[0], keys[1], keys[2]}, of_all_tokens = {keys[2], f_.one(), f_.one()};
    const bool decays_fit = f_.shape(*decay) == one || f_.shape(*decay) == of_all_tokens || f_.shape(*decay) == keys;
    bool fits = decays_fit && f_.shape(*query) == keys && f_.shape(*key) == keys && f_.shape(*value) == values &&
                (!beta || f_.shape(*beta) == each);
    for (ValueId tensor : {*state, *query, *key, *value, *decay, beta.value_or(*state)})
      fits = fits && f_.dtype(tensor) == DType::kF32;
    if (!fits) return false;
    // A decay of 0, whose logarithm is infinite, is 0 again in the op.
    ValueId log_decay = f_.log(*decay);
    if (f_.rank(log_decay) == 3) log_decay = f_.expand(f_.reshape(log_decay, {keys[2], f_.one()}), one, {*key});
    log_decay = packed(f_, log_decay);
    ValueId packed_query = packed(f_, *query), packed_key = packed(f_, *key), packed_value = packed(f_, *value);
    std::vector<ValueId> results = f_.nodes(kLinearAttention,
                                            {{"query", packed_query},
                                             {"key", packed_key},
                                             {"value", packed_value},
                                             {"state", *state},
                                             {"decay", log_decay},
                                             {"beta", beta ? Argument(packed(f_, *beta)) : Argument()},
                                             {"heads", *heads}},
                                            {f_.type(packed_value), f_.type(*state)});
    ValueId by_batch = f_.reshape(results[0], {values[1], values[0], values[2], values[3]});
    return f_.replace({results[1], f_.permute(by_batch, {1, 0, 2, 3})});
  }

 private:
  /// What the scan passes as an input of a step: a state, a sequence of it for all tokens, or the same for each.
  std::optional<ValueId> given(ValueId input) const {
    std::span<const ValueId> inputs = body_.inputs();
    size_t at = static_cast<size_t>(std::ranges::find(inputs, input) - inputs.begin());
    for (std::string_view passed : {"init", "xs", "additional"}) {
      const auto* tensors = f_.argument(passed).get_if<ValueList>();
      if (tensors == nullptr) return std::nullopt;
      if (at < tensors->size()) return (*tensors)[at];
      at -= tensors->size();
    }
    return std::nullopt;
  }

  AtenBuilder& f_;
  const argosy::Graph& body_;
};

Result<bool> recognise_scan(RuleContext& context, const RewriteRule& rule) {
  return or_refused([&]() -> Result<bool> {
    AtenBuilder f(context, &rule);
    const auto* graph = f.argument("combine").get_if<GraphId>();
    const auto* init = f.argument("init").get_if<ValueList>();
    if (graph == nullptr || init == nullptr || init->size() != 1 || !f.argument("xs").is<ValueList>() ||
        f.output_count() != 2)
      return false;
    argosy::Graph& body = context.component.graphs[graph->index];
    Rewriter of_body(body);
    RuleContext inside{context.program, context.component, of_body, {}};
    AtenBuilder reader(inside);
    const auto *state = body.outputs()[0].get_if<ValueId>(), *output = body.outputs()[1].get_if<ValueId>();
    if (state == nullptr || output == nullptr) return false;
    std::optional<Step> step = StepReader(reader).read(*state, *output);
    return step && Scan(f, body).replace(*step);
  });
}

constexpr RewriteRule kRules[] = {
    {.op = "higher_order.scan", .name = "recognise-linear-attention", .apply = recognise_scan}};

}  // namespace

Pass use_linear_attention() {
  Pass pass = apply_rules("use-linear-attention",
                          std::make_shared<RuleTable>(std::array{std::span<const RewriteRule>(kRules)}));
  pass.run = [rewrite = std::move(pass.run)](Program& program, PassContext& context) -> Result<bool> {
    ARGOSY_TRY(bool has_changed, rewrite(program, context));
    // Steps of scans that are gone.
    for (Component& component : program.components) {
      if (has_changed) drop_unreachable_graphs(component);
    }
    return has_changed;
  };
  return pass;
}

}  // namespace argosy::onnx
