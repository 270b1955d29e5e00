#include "backends/onnx/mixture_of_experts.h"

#include <array>
#include <limits>
#include <memory>
#include <optional>

#include "backends/onnx/made_weight.h"
#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/rewrite_rules.h"
#include "passes/structures/heads.h"

// As transformers computes experts: each of N tokens has k experts with a weight each. The N * k rows are sorted by
// expert, and put back in order at the end:
//   sorted, order = sort(experts);  rows = tokens[order // k];  inner = activation(rows @ first[expert])
//   result[token] = sum over k of (inner @ second[expert] * weights[order]) in the first order
// The op chooses experts itself, by the largest of a row of numbers, and weighs them by the softmax of these k numbers.
// So it is given the logarithms of the weights, and minus infinity for all other experts: whatever the router computes.

namespace argosy::onnx {
namespace {

/// Tokens are [tokens, width], router [tokens, experts]; first [experts, 2 * inner, width] has a gate and a factor in
/// turn, second is [experts, width, inner]. A limit of 0 is none.
constexpr std::string_view kExpertsOfEngine =
    "onnx::experts(Tensor input, Tensor router, Tensor first, Tensor? first_bias, Tensor second, Tensor? second_bias, "
    "int k, float alpha, float beta, float limit) -> Tensor";
constexpr double kSmallestWeight = 1e-37;  // its logarithm is finite; a weight of 0 then counts nothing all the same

/// A product of sorted rows with the matrices of their experts, and a bias of each expert.
struct Product {
  ValueId rows, ends;
  ValueId weight;           // as the graph has it
  ValueId bias;             // [experts, outer]; invalid: none
  bool is_by_rows = false;  // the weight is [experts, outer, inner], else [experts, inner, outer]
};

/// gate * sigmoid(alpha * gate) * (factor + beta), both limited.
struct Activation {
  ValueId input;  // [rows, 2 * inner]
  double alpha = 1, beta = 0, limit = 0;
  bool is_in_turn = false;  // gates and factors alternate; else they are halves
};

class ExpertsReader {
 public:
  explicit ExpertsReader(const AtenBuilder& f) : f_(f) {}

  /// The one tensor that indexes the first dim of `source`; invalid: something else.
  std::optional<std::pair<ValueId, ValueId>> indexed(ValueId tensor) const {
    const argosy::Node* index = f_.made_by(tensor, "aten.index.Tensor");
    const auto* indices = index == nullptr ? nullptr : index->arguments[1].get_if<ValueList>();
    if (indices == nullptr || indices->size() != 1) return std::nullopt;
    return std::pair(AtenBuilder::operand(*index, 0), (*indices)[0]);
  }

  std::optional<Product> product(ValueId tensor, ValueId sorted) const {
    Product result;
    if (const argosy::Node* sum = f_.made_by(tensor, "aten.add.Tensor"); AtenBuilder::adds_as_is(sum)) {
      for (size_t i : {size_t{0}, size_t{1}}) {
        auto bias = indexed(AtenBuilder::operand(*sum, i));
        if (!bias || bias->second != sorted) continue;
        result.bias = bias->first;
        tensor = AtenBuilder::operand(*sum, 1 - i);
        break;
      }
    }
    const argosy::Node* node = f_.made_by(tensor, "transformers.grouped_mm_fallback.default");
    if (node == nullptr) return std::nullopt;
    result.rows = AtenBuilder::operand(*node, 0);
    result.weight = AtenBuilder::operand(*node, 1);
    result.ends = AtenBuilder::operand(*node, 2);
    const argosy::Node* turned = f_.made_by(result.weight, "aten.permute.default");
    if (turned != nullptr && numbers(turned->arguments[1]) == std::vector<int64_t>{0, 2, 1}) {
      result.weight = AtenBuilder::operand(*turned, 0);
      result.is_by_rows = true;
    }
    return result;
  }

  /// Whether rows end where counts of sorted experts say.
  bool are_ends(ValueId ends, ValueId sorted, int64_t experts) const {
    const argosy::Node* sum = f_.made_by(ends, "aten.cumsum.default");
    const argosy::Node* counts = f_.made_by(sum, 0, "aten.histc.default");
    const argosy::Node* cast = f_.made_by(counts, 0, "aten.to.dtype");
    return cast != nullptr && AtenBuilder::operand(*cast, 0) == sorted && whole(counts->arguments[1]) == experts &&
           whole(counts->arguments[2]) == 0 && whole(counts->arguments[3]) == experts - 1;
  }

  std::optional<Activation> activation(ValueId tensor) const {
    const argosy::Node* product = f_.made_by(tensor, "aten.mul.Tensor");
    if (product == nullptr) return std::nullopt;
    for (size_t i : {size_t{0}, size_t{1}}) {
      Activation result;
      ValueId gate = gate_of(AtenBuilder::operand(*product, i), result.alpha);
      if (!gate.is_valid()) continue;
      ValueId factor = AtenBuilder::operand(*product, 1 - i);
      if (const argosy::Node* sum = f_.made_by(factor, "aten.add.Scalar")) {
        std::optional<double> beta = real(sum->arguments[1]);
        if (!beta || !AtenBuilder::adds_as_is(sum)) return std::nullopt;
        result.beta = *beta;
        factor = AtenBuilder::operand(*sum, 0);
      }
      const argosy::Node *top = f_.made_by(gate, "aten.clamp.default"),
                         *both = f_.made_by(factor, "aten.clamp.default");
      if ((top == nullptr) != (both == nullptr)) return std::nullopt;
      if (top != nullptr) {
        std::optional<double> limit = real(top->arguments[2]), low = real(both->arguments[1]),
                              high = real(both->arguments[2]);
        if (!limit || *limit <= 0 || !top->arguments[1].is<None>() || high != limit || low != -*limit)
          return std::nullopt;
        result.limit = *limit;
        gate = AtenBuilder::operand(*top, 0);
        factor = AtenBuilder::operand(*both, 0);
      }
      return read_parts(gate, factor, result) ? std::optional(result) : std::nullopt;
    }
    return std::nullopt;
  }

  /// Whether no element is negative, for what routers compute.
  bool is_positive(ValueId tensor, int steps = 16) const {
    if (steps == 0) return false;
    for (std::string_view op : {"aten.softmax.int", "aten.sigmoid.default", "aten.exp.default"}) {
      if (f_.made_by(tensor, op) != nullptr) return true;
    }
    const argosy::Node* top = f_.made_by(tensor, "aten.topk.default");
    if (top != nullptr) return top->outputs[0] == tensor && is_positive(AtenBuilder::operand(*top, 0), steps - 1);
    for (std::string_view op : {"aten.to.dtype", "aten.reshape.default", "aten.unsqueeze.default",
                                "aten.expand.default", "aten.gather.default", "aten.sum.dim_IntList"}) {
      if (const argosy::Node* node = f_.made_by(tensor, op))
        return is_positive(AtenBuilder::operand(*node, 0), steps - 1);
    }
    for (std::string_view op : {"aten.mul.Scalar", "aten.add.Scalar", "aten.div.Scalar"}) {
      const argosy::Node* node = f_.made_by(tensor, op);
      if (node == nullptr) continue;
      std::optional<double> number = real(node->arguments[1]);
      return number && *number > 0 && is_positive(AtenBuilder::operand(*node, 0), steps - 1);
    }
    for (std::string_view op : {"aten.mul.Tensor", "aten.div.Tensor"}) {
      const argosy::Node* node = f_.made_by(tensor, op);
      if (node == nullptr) continue;
      return is_positive(AtenBuilder::operand(*node, 0), steps - 1) &&
             is_positive(AtenBuilder::operand(*node, 1), steps - 1);
    }
    return false;
  }

  static std::optional<double> real(const Argument& argument) {
    if (const auto* number = argument.get_if<double>()) return *number;
    const auto* number = argument.get_if<int64_t>();
    return number == nullptr ? std::nullopt : std::optional(static_cast<double>(*number));
  }
  static std::optional<int64_t> whole(const Argument& argument) {
    std::optional<double> number = real(argument);
    return number ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
  }

 private:
  /// x of silu(x), or of x * sigmoid(alpha * x); invalid: something else.
  ValueId gate_of(ValueId tensor, double& alpha) const {
    if (const argosy::Node* silu = f_.made_by(tensor, "aten.silu.default")) return AtenBuilder::operand(*silu, 0);
    const argosy::Node* product = f_.made_by(tensor, "aten.mul.Tensor");
    if (product == nullptr) return {};
    for (size_t i : {size_t{0}, size_t{1}}) {
      ValueId gate = AtenBuilder::operand(*product, i);
      const argosy::Node* sigmoid = f_.made_by(product, 1 - i, "aten.sigmoid.default");
      if (sigmoid == nullptr) continue;
      ValueId inside = AtenBuilder::operand(*sigmoid, 0);
      if (inside == gate) return gate;
      const argosy::Node* scaled = f_.made_by(inside, "aten.mul.Scalar");
      std::optional<double> by = scaled == nullptr ? std::nullopt : real(scaled->arguments[1]);
      if (!by || AtenBuilder::operand(*scaled, 0) != gate) continue;
      alpha = *by;
      return gate;
    }
    return {};
  }

  /// The tensor that gates and factors are parts of.
  bool read_parts(ValueId gate, ValueId factor, Activation& result) const {
    if (const argosy::Node* split = f_.made_by(gate, "aten.split_with_sizes.default")) {
      result.input = AtenBuilder::operand(*split, 0);
      const auto* dim = split->arguments[2].get_if<int64_t>();
      return split->outputs.size() == 2 && split->outputs[0] == gate && split->outputs[1] == factor && dim != nullptr &&
             *dim == 1 && f_.size(gate, 1) == f_.size(factor, 1);
    }
    const argosy::Node *first = f_.made_by(gate, "aten.slice.Tensor"),
                       *second = f_.made_by(factor, "aten.slice.Tensor");
    if (first == nullptr || second == nullptr || f_.rank(gate) != 2) return false;
    result.input = AtenBuilder::operand(*first, 0);
    result.is_in_turn = true;
    return AtenBuilder::operand(*second, 0) == result.input && starts_at(f_, *first, 0, 2) &&
           starts_at(f_, *second, 1, 2) && f_.size(gate, 1) == f_.size(factor, 1);
  }

  const AtenBuilder& f_;
};

/// Weights of experts as the op wants them, made while they are copied.
class ExpertWeights {
 public:
  ExpertWeights(AtenBuilder& f, RuleContext& context) : f_(f), context_(context) {}

  /// A weight of the graph's that nothing else reads.
  bool can_be_made(ValueId value) const {
    return can_be_replaced(context_.program, f_, value) && f_.dtype(value) == DType::kF32;
  }

  ValueId matrix(ValueId value, bool is_by_rows, bool has_halves) {
    const Weight& weight = context_.program[f_.graph()[value].weight];
    std::vector<int64_t> shape = weight.shape;
    TensorSourcePtr source = weight.source;
    if (!is_by_rows) {
      source = take(transposed(std::move(source), {0, 2, 1}));
      std::swap(shape[1], shape[2]);
    }
    if (has_halves) source = in_turn(std::move(source), shape, {0, 2, 1, 3});
    return add(value, is_by_rows ? kArranged : kTurned, std::move(source));
  }

  ValueId bias(ValueId value, bool has_halves) {
    const Weight& weight = context_.program[f_.graph()[value].weight];
    const std::vector<int64_t> shape = weight.shape;
    return has_halves ? add(value, kArranged, in_turn(weight.source, shape, {0, 2, 1})) : value;
  }

 private:
  TensorSourcePtr take(Result<TensorSourcePtr> source) {
    if (!source) f_.refuse("weights of experts that cannot be arranged");
    return *std::move(source);
  }

  /// Halves of the second dim, element by element.
  TensorSourcePtr in_turn(TensorSourcePtr source, const std::vector<int64_t>& shape, std::vector<int> order) {
    std::vector<int64_t> halves = shape;
    halves[1] /= 2;
    halves.insert(halves.begin() + 1, 2);
    source = take(transposed(take(reshaped(std::move(source), std::move(halves))), std::move(order)));
    return take(reshaped(std::move(source), shape));
  }

  ValueId add(ValueId value, std::string_view what, TensorSourcePtr source) {
    return add_made_weight(context_.program, context_.rewriter, f_, value, what, std::move(source));
  }

  AtenBuilder& f_;
  RuleContext& context_;
};

/// Experts [tokens, k] and their weights, from what sorts them.
struct Routes {
  ValueId experts, weights;
};

/// sum over k of rows that were put back in order.
bool recognise_experts(AtenBuilder& f, RuleContext& context) {
  ExpertsReader reader(f);
  const argosy::Node* by_token = f.made_by(f["self"], "aten.reshape.default");
  std::optional<std::vector<int64_t>> dims = numbers(f.argument("dim"));
  if (by_token == nullptr || !dims || *dims != std::vector<int64_t>{1} || f.rank(f["self"]) != 3 || f.flag("keepdim"))
    return false;
  auto ordered = reader.indexed(AtenBuilder::operand(*by_token, 0));
  if (!ordered) return false;
  const argosy::Node *weighted = f.made_by(ordered->first, "aten.mul.Tensor"),
                     *placed = f.made_by(ordered->second, "aten.index_put.default");
  const argosy::Node *column = f.made_by(weighted, 1, "aten.unsqueeze.default"),
                     *places = f.made_by(placed, 2, "aten.arange.start_step");
  if (column == nullptr || places == nullptr || ExpertsReader::whole(places->arguments[0]) != 0) return false;
  const auto* put_at = placed->arguments[1].get_if<ValueList>();
  auto weights = reader.indexed(AtenBuilder::operand(*column, 0));
  if (put_at == nullptr || put_at->size() != 1 || !weights || weights->second != (*put_at)[0]) return false;
  const argosy::Node* sort = f.made_by(weights->second, "aten.sort.default");
  if (sort == nullptr || sort->outputs[1] != weights->second) return false;
  const argosy::Node *flat_experts = f.made_by(sort, 0, "aten.reshape.default"),
                     *flat_weights = f.made_by(weights->first, "aten.reshape.default");
  if (flat_experts == nullptr || flat_weights == nullptr) return false;
  ValueId sorted = sort->outputs[0];
  Routes routes{AtenBuilder::operand(*flat_experts, 0), AtenBuilder::operand(*flat_weights, 0)};

  std::optional<Product> second = reader.product(AtenBuilder::operand(*weighted, 0), sorted);
  std::optional<Activation> activation = second ? reader.activation(second->rows) : std::nullopt;
  std::optional<Product> first = activation ? reader.product(activation->input, sorted) : std::nullopt;
  auto rows = first ? reader.indexed(first->rows) : std::nullopt;
  if (!rows || first->ends != second->ends || first->bias.is_valid() != second->bias.is_valid()) return false;
  const argosy::Node* owner = f.made_by(rows->second, "aten.div.Scalar_mode");
  if (owner == nullptr || AtenBuilder::operand(*owner, 0) != weights->second) return false;

  ValueId tokens = rows->first;
  std::optional<int64_t> k = f.size(routes.experts, -1).as_integer(), experts = f.size(first->weight, 0).as_integer();
  ExpertWeights made(f, context);
  bool fits = k && experts && f.rank(routes.experts) == 2 && f.shape(routes.weights) == f.shape(routes.experts) &&
              f.rank(tokens) == 2 && f.size(tokens, 0) == f.size(routes.experts, 0) && f.dtype(tokens) == DType::kF32 &&
              f.dtype(routes.weights) == DType::kF32 && ExpertsReader::whole(owner->arguments[1]) == *k &&
              reader.are_ends(first->ends, sorted, *experts) &&
              f.shape(f["self"]) == argosy::Sizes{f.size(tokens, 0), f.size(routes.experts, 1), f.size(tokens, 1)} &&
              f.result().shape == f.shape(tokens) && reader.is_positive(routes.weights);
  if (!fits) return false;
  for (ValueId weight : {first->weight, first->bias, second->weight, second->bias}) {
    if (weight.is_valid() && !made.can_be_made(weight)) return false;
  }
  const bool has_halves = !activation->is_in_turn;
  ValueId first_weight = made.matrix(first->weight, first->is_by_rows, has_halves),
          second_weight = made.matrix(second->weight, second->is_by_rows, false);
  Argument first_bias, second_bias;
  if (first->bias.is_valid()) {
    first_bias = made.bias(first->bias, has_halves);
    second_bias = second->bias;
  }
  ValueId none =
      f.full({f.size(tokens, 0), f.integer(*experts)}, -std::numeric_limits<double>::infinity(), DType::kF32, {tokens});
  ValueId logarithms = f.log(f.clamp(routes.weights, kSmallestWeight, std::nullopt));
  ValueId router =
      f.node(aten::kScatterSrc, {{"self", none}, {"dim", int64_t{1}}, {"index", routes.experts}, {"src", logarithms}},
             DType::kF32, f.shape(none));
  ValueId result = f.node(kExpertsOfEngine,
                          {{"input", tokens},
                           {"router", router},
                           {"first", first_weight},
                           {"first_bias", first_bias},
                           {"second", second_weight},
                           {"second_bias", second_bias},
                           {"k", *k},
                           {"alpha", activation->alpha},
                           {"beta", activation->beta},
                           {"limit", activation->limit}},
                          DType::kF32, f.shape(tokens));
  // The op's weights add up to 1.
  return f.replace(f.mul(result, f.sum(routes.weights, {1}, true)));
}

Result<bool> apply_experts(RuleContext& context, const RewriteRule& rule) {
  return or_refused([&]() -> Result<bool> {
    AtenBuilder f(context, &rule);
    return recognise_experts(f, context);
  });
}

constexpr RewriteRule kExpertRules[] = {
    {.op = "aten.sum.dim_IntList", .name = "recognise-experts", .apply = apply_experts}};

}  // namespace

Pass use_mixture_of_experts() {
  return apply_rules("use-mixture-of-experts",
                     std::make_shared<RuleTable>(std::array{std::span<const RewriteRule>(kExpertRules)}));
}

}  // namespace argosy::onnx
