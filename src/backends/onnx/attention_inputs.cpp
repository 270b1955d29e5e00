#include "backends/onnx/attention_inputs.h"

#include <algorithm>

#include "backends/onnx/made_weight.h"
#include "passes/aten_schemas.h"
#include "passes/quantized_weights.h"
#include "passes/structures/heads.h"

namespace argosy::onnx {
namespace {

// What the op asks of heads that it turns, and of the factors.
constexpr int64_t kTurnedWidthStep = 16, kColumnStep = 8;
constexpr int64_t kLargestTable = int64_t{1} << 24;  // elements: 64 MiB

/// What models do with queries and keys between the product and attention.
constexpr std::string_view kByHead[] = {"aten.reshape.default",    "aten.permute.default",  "aten.rms_norm.default",
                                        "aten.layer_norm.default", "argosy.rotary.default", "aten.to.dtype",
                                        "aten.mul.Scalar",         "aten.clamp.default"};

/// The product with a weight that queries, keys or values are computed from, head by head; invalid: none is found.
ValueId product_behind(const AtenBuilder& f, ValueId tensor) {
  while (f.made_by(tensor, "aten.linear.default") == nullptr) {
    bool goes_on = std::ranges::any_of(kByHead, [&](std::string_view op) { return f.made_by(tensor, op) != nullptr; });
    if (!goes_on) return {};
    tensor = AtenBuilder::operand(f.graph()[f.graph()[tensor].producer], 0);
  }
  return tensor;
}

}  // namespace

AttentionInputs AttentionInputFinder::find(AtenBuilder& f, NodeId attention, AttentionInputs inputs, int64_t width) {
  take_rotary(f, inputs, width);
  if (options_.packs && !take_slices(f, inputs) && options_.joins_weights) join_products(f, attention, inputs);
  return inputs;
}

/// Whether an input holds the positions that the op counts by itself: 0, 1, … in each row of tokens.
bool AttentionInputFinder::are_counted(ValueId positions) const {
  return std::ranges::any_of(component_.inputs, [&](const InputSpec& input) {
    return input.value == positions && input.name == "position_ids";
  });
}

ValueId AttentionInputFinder::table(AtenBuilder& f, const PositionFactors& factors, DType dtype) {
  auto found = std::ranges::find_if(
      tables_, [&](const auto& known) { return known.first == factors && f.dtype(known.second) == dtype; });
  if (found != tables_.end()) return found->second;
  ValueId made = table_of(f, factors, options_.longest_text, dtype);
  tables_.emplace_back(factors, made);
  return made;
}

void AttentionInputFinder::take_rotary(AtenBuilder& f, AttentionInputs& inputs, int64_t width) {
  const argosy::Node *query = f.made_by(inputs.query, "argosy.rotary.default"),
                     *key = f.made_by(inputs.key, "argosy.rotary.default");
  if (options_.longest_text == 0 || query == nullptr || key == nullptr) return;
  ValueId cos = AtenBuilder::operand(*query, 1), sin = AtenBuilder::operand(*query, 2);
  const Argument pairs = query->arguments[4];
  std::optional<int64_t> columns = f.size(cos, -1).as_integer();
  if (!columns || width % kTurnedWidthStep != 0 || *columns % kColumnStep != 0 ||
      *columns * options_.longest_text > kLargestTable || key->arguments[4] != pairs)
    return;
  std::optional<PositionFactors> cosines = read_position_factors(f, cos), sines = read_position_factors(f, sin);
  if (!cosines || !sines || cosines->is_sine || !sines->is_sine) return;
  if (!are_counted(cosines->positions) || sines->positions != cosines->positions) return;
  // Keys are turned as queries are.
  if (read_position_factors(f, AtenBuilder::operand(*key, 1)) != cosines ||
      read_position_factors(f, AtenBuilder::operand(*key, 2)) != sines)
    return;
  ValueId plain_query = AtenBuilder::operand(*query, 0), plain_key = AtenBuilder::operand(*key, 0);
  inputs.cos = table(f, *cosines, f.dtype(plain_query));
  inputs.sin = table(f, *sines, f.dtype(plain_query));
  inputs.pairs = *pairs.get_if<bool>();
  inputs.query = plain_query;
  inputs.key = plain_key;
}

/// Three parts of one tensor, one behind the other and nothing left over.
bool AttentionInputFinder::take_slices(const AtenBuilder& f, AttentionInputs& inputs) const {
  ValueId whole;
  int64_t next = 0;
  for (ValueId part : {inputs.query, inputs.key, inputs.value}) {
    const argosy::Node* slice = f.made_by(part, "aten.slice.Tensor");
    if (slice == nullptr) return false;
    ValueId source = AtenBuilder::operand(*slice, 0);
    bool fits = (!whole.is_valid() || source == whole) && f.rank(source) == 3 && starts_at(f, *slice, next);
    if (!fits) return false;
    whole = source;
    next += *f.size(part, 2).as_integer();
  }
  if (f.size(whole, 2).as_integer() != next) return false;
  inputs.query = whole;
  inputs.key = inputs.value = {};
  return true;
}

ValueId AttentionInputFinder::joined(const AtenBuilder& f, const std::vector<ValueId>& weights) {
  std::vector<TensorSourcePtr> sources;
  std::vector<std::string> names;
  for (ValueId id : weights) {
    if (!can_be_replaced(program_, f, id)) return {};
    const Weight& weight = program_[f.graph()[id].weight];
    sources.push_back(weight.source);
    names.push_back(weight.name);
  }
  auto source = concatenated(std::move(sources), 0);
  if (!source) return {};
  ValueId made = add_made_weight(program_, rewriter_, f, weights[0], "joined", *std::move(source));
  note_joined(program_, program_.weights.back().name, names);
  return made;
}

/// Three products of one tensor with weights: one product with all of them. Attention takes it whole if nothing is in
/// between, else it is split.
bool AttentionInputFinder::join_products(AtenBuilder& f, NodeId attention, AttentionInputs& inputs) {
  std::vector<ValueId> products, weights, biases;
  std::vector<int64_t> sizes;
  ValueId x;
  NodeId first;
  bool is_taken_whole = true;
  for (ValueId part : {inputs.query, inputs.key, inputs.value}) {
    ValueId product = product_behind(f, part);
    if (!product.is_valid() || std::ranges::find(products, product) != products.end()) return false;
    NodeId node = f.graph()[product].producer;
    const argosy::Node& linear = f.graph()[node];
    std::optional<int64_t> size = f.size(product, -1).as_integer();
    ValueId input = AtenBuilder::operand(linear, 0);
    if (!size || (x.is_valid() && input != x)) return false;
    x = input;
    if (!first.is_valid() || f.graph().comes_before(node, first)) first = node;
    is_taken_whole = is_taken_whole && product == part && f.graph()[part].uses.size() <= 1;
    products.push_back(product);
    sizes.push_back(*size);
    weights.push_back(AtenBuilder::operand(linear, 1));
    if (const ValueId* bias = linear.arguments[2].get_if<ValueId>()) biases.push_back(*bias);
  }
  if (!biases.empty() && biases.size() != weights.size()) return false;
  ValueId weight = joined(f, weights);
  if (!weight.is_valid()) return false;
  Argument bias;
  if (!biases.empty()) {
    ValueId all = joined(f, biases);
    if (!all.is_valid()) return false;
    bias = all;
  }
  Sizes shape = f.shape(x);
  shape.back() = f.size(weight, 0);
  if (!is_taken_whole) rewriter_.insert_before(first);
  ValueId whole =
      f.node(aten::kLinear, {{"input", x}, {"weight", weight}, {"bias", bias}}, f.dtype(x), std::move(shape));
  if (is_taken_whole) {
    inputs.query = whole;
    inputs.key = inputs.value = {};
    return true;
  }
  std::vector<ValueId> parts = f.split(whole, sizes, -1);
  for (ValueId* input : {&inputs.query, &inputs.key, &inputs.value}) {
    auto found = std::ranges::find(products, *input);
    if (found != products.end()) *input = parts[static_cast<size_t>(found - products.begin())];
  }
  for (size_t i = 0; i < parts.size(); ++i) rewriter_.replace_uses(products[i], parts[i]);
  rewriter_.insert_before(attention);
  return true;
}

}  // namespace argosy::onnx
