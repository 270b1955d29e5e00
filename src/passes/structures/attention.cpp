#include <limits>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/heads.h"
#include "passes/structures/recognise.h"
#include "passes/structures/structures.h"

namespace argosy {
namespace {

/// The most negative finite number, as a mask of floats has it where a query may not look.
double lowest(DType dtype) {
  switch (dtype) {
    case DType::kF16: return -65504.0;
    case DType::kBF16: return -3.3895313892515355e38;
    case DType::kF64: return std::numeric_limits<double>::lowest();
    default: return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

constexpr std::string_view kAttentionSchema =
    "argosy::attention(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? sinks, float scale, float "
    "softcap, int window) -> Tensor";

/// Attention as the op's kernel in Python computes it (python/argosy/capture/attention.py).
class Attention {
 public:
  explicit Attention(AtenBuilder& f) : f_(f), query_(f["query"]) {}

  bool decompose() {
    ValueId key = repeated(f_["key"]), value = repeated(f_["value"]);
    bool is_plain = number("softcap") == 0 && !f_.has("sinks");
    TensorType result{f_.dtype(query_), f_.shape(query_), {}};
    result.shape[3] = f_.size(value, 3);
    ValueId attended = is_plain ? f_.value(aten::kScaledDotProductAttention,
                                           {{"query", query_},
                                            {"key", key},
                                            {"value", value},
                                            {"attn_mask", f_.argument("mask")},
                                            {"scale", number("scale")}},
                                           result)
                                : f_.value(aten::kMatmul, {{"self", weights_of(key)}, {"other", value}}, result);
    return f_.become(aten::kContiguous, {{"self", attended}});
  }

 private:
  double number(std::string_view name) const { return std::get<double>(f_.argument(name).variant()); }

  /// Each head of keys or values once for every query head that shares it.
  ValueId repeated(ValueId tensor) {
    std::optional<int64_t> heads = f_.size(query_, 1).as_integer(), own = f_.size(tensor, 1).as_integer();
    if (!heads || !own || *own == 0 || *heads % *own != 0) {
      f_.refuse("attention over a number of heads that is not known");
    }
    if (*heads == *own) return tensor;
    Sizes shape = f_.shape(tensor);
    shape[1] = f_.size(query_, 1);
    return f_.node(aten::kRepeatInterleaveSelfInt, {{"self", tensor}, {"repeats", *heads / *own}, {"dim", int64_t{1}}},
                   f_.dtype(tensor), std::move(shape));
  }

  ValueId weights_of(ValueId key) {
    TensorType turned = f_.type(key);
    if (turned.strides.empty()) {
      SymExpr width = turned.shape[3], area = f_.symbols().mul(turned.shape[2], width);
      turned.strides = {f_.symbols().mul(turned.shape[1], area), area, width, f_.one()};
    }
    std::swap(turned.shape[2], turned.shape[3]);
    std::swap(turned.strides[2], turned.strides[3]);
    ValueId scores = f_.matmul(
        query_, f_.value(aten::kTransposeInt, {{"self", key}, {"dim0", int64_t{-1}}, {"dim1", int64_t{-2}}}, turned));
    scores = scaled(aten::kMulScalar, scores, number("scale"));
    if (double cap = number("softcap"); cap != 0) {
      scores = scaled(aten::kMulScalar, f_.tanh(scaled(aten::kDivScalar, scores, cap)), cap);
    }
    if (f_.has("mask")) scores = masked(scores, f_["mask"]);
    if (f_.has("sinks")) return softmax_with_sinks(scores, f_["sinks"]);
    ValueId weights = f_.node(aten::kSoftmaxInt, {{"self", scores}, {"dim", int64_t{-1}}, {"dtype", DType::kF32}},
                              DType::kF32, f_.shape(scores));
    return f_.node(aten::kToDtype, {{"self", weights}, {"dtype", f_.dtype(scores)}}, f_.dtype(scores),
                   f_.shape(scores));
  }

  ValueId scaled(std::string_view schema, ValueId x, double by) {
    return f_.node(schema, {{"self", x}, {"other", by}}, f_.dtype(x), f_.shape(x));
  }

  ValueId masked(ValueId scores, ValueId mask) {
    const TensorType type{f_.dtype(scores), f_.shape(scores), {}};
    if (f_.dtype(mask) != DType::kBool) return f_.value(aten::kAddTensor, {{"self", scores}, {"other", mask}}, type);
    return f_.value(aten::kMaskedFillScalar,
                    {{"self", scores}, {"mask", f_.bitwise_not(mask)}, {"value", lowest(type.dtype)}}, type);
  }

  /// A sink is one more score of each head that takes part in the softmax and weighs no value.
  ValueId softmax_with_sinks(ValueId scores, ValueId sinks) {
    const Sizes shape = f_.shape(scores);
    SymExpr one = f_.one(), none = f_.integer(0), more = f_.symbols().add(shape[3], one);
    DType dtype = f_.dtype(sinks);
    IntList as_column = {int64_t{1}, int64_t{-1}, int64_t{1}, int64_t{1}};
    ValueId sink =
        f_.node(aten::kView, {{"self", sinks}, {"size", std::move(as_column)}}, dtype, {one, shape[1], one, one});
    IntItem batch = f_.item(scores, 0), queries = f_.item(scores, 2);
    sink = f_.value(aten::kExpand, {{"self", sink}, {"size", IntList{batch, int64_t{-1}, queries, int64_t{1}}}},
                    TensorType{dtype, {shape[0], shape[1], shape[2], one}, {none, one, none, one}});
    TensorType joined{f_.dtype(scores), {shape[0], shape[1], shape[2], more}, {}};
    ValueId all = f_.value(aten::kCat, {{"tensors", ValueList{scores, sink}}, {"dim", int64_t{-1}}}, joined);
    ValueId weights = f_.value(aten::kSoftmaxInt, {{"self", all}, {"dim", int64_t{-1}}}, joined);
    SymExpr head = f_.symbols().mul(shape[2], more);
    return f_.value(aten::kSliceTensor,
                    {{"self", weights}, {"dim", int64_t{3}}, {"start", int64_t{0}}, {"end", int64_t{-1}}},
                    TensorType{joined.dtype, shape, {f_.symbols().mul(shape[1], head), head, more, one}});
  }

  AtenBuilder& f_;
  ValueId query_;
};

bool decompose_attention(AtenBuilder& f) { return Attention(f).decompose(); }

/// Scores before they were multiplied with a number or divided by one, if they were.
ValueId before_scale(const AtenBuilder& f, ValueId scores, double& scale) {
  const Node *product = f.made_by(scores, "aten.mul.Scalar"), *quotient = f.made_by(scores, "aten.div.Scalar");
  const Node* scaled = product != nullptr ? product : quotient;
  const double* by = scaled == nullptr ? nullptr : scaled->arguments[1].get_if<double>();
  if (by == nullptr || *by == 0) return scores;
  scale = product != nullptr ? *by : 1 / *by;
  return AtenBuilder::operand(*scaled, 0);
}

/// tanh(scores / cap) * cap; a cap of 1 leaves the tanh alone.
ValueId before_softcap(const AtenBuilder& f, ValueId scores, double& softcap) {
  if (const Node* tanh = f.made_by(scores, "aten.tanh.default")) {
    softcap = 1;
    return AtenBuilder::operand(*tanh, 0);
  }
  const Node* product = f.made_by(scores, "aten.mul.Scalar");
  const Node* quotient = f.made_by(f.made_by(product, 0, "aten.tanh.default"), 0, "aten.div.Scalar");
  if (quotient == nullptr) return scores;
  const double *cap = product->arguments[1].get_if<double>(), *divisor = quotient->arguments[1].get_if<double>();
  if (cap == nullptr || divisor == nullptr || *cap != *divisor || *cap == 0) return scores;
  softcap = *cap;
  return AtenBuilder::operand(*quotient, 0);
}

/// Weights of all keys, before that of one more score was cut off; the weights themselves if none was.
ValueId before_cut(const AtenBuilder& f, ValueId weights) {
  const Node* cut = f.made_by(weights, "aten.slice.Tensor");
  if (cut == nullptr || !starts_at(f, *cut, 0)) return weights;
  ValueId all = AtenBuilder::operand(*cut, 0);
  return f.symbols().add(f.size(weights, -1), f.one()) == f.size(all, -1) ? all : weights;
}

/// Scores before the largest of each row was taken off, which no softmax minds.
ValueId before_largest(const AtenBuilder& f, ValueId scores) {
  const Node* difference = f.made_by(scores, "aten.sub.Tensor");
  if (difference == nullptr) return scores;
  ValueId whole = AtenBuilder::operand(*difference, 0), largest = AtenBuilder::operand(*difference, 1);
  const Node* node = f.made_by(largest, "aten.max.dim");
  if (node == nullptr) node = f.made_by(largest, "aten.amax.default");
  bool fits = node != nullptr && AtenBuilder::adds_as_is(difference) && AtenBuilder::operand(*node, 0) == whole &&
              node->outputs[0] == largest && f.rank(largest) == f.rank(whole) && f.size(largest, -1).as_integer() == 1;
  return fits ? whole : scores;
}

/// Scores before one of each head was joined, which `sinks` [heads] then has; the scores themselves if none was.
ValueId before_sinks(const AtenBuilder& f, ValueId scores, ValueId& sinks) {
  ValueId all = before_largest(f, scores);
  const Node* joined = f.made_by(all, "aten.cat.default");
  if (joined == nullptr) return scores;
  const auto* parts = joined->arguments[0].get_if<ValueList>();
  const auto* dim = joined->arguments[1].get_if<int64_t>();
  if (parts == nullptr || parts->size() != 2 || dim == nullptr || *dim != 3 || f.rank(all) != 4) return scores;
  const Node* column = f.made_by(f.made_by((*parts)[1], "aten.expand.default"), 0, "aten.reshape.default");
  if (column == nullptr || f.size((*parts)[1], 3).as_integer() != 1) return scores;
  ValueId source = AtenBuilder::operand(*column, 0);
  const Sizes one_a_head = {f.one(), f.size(all, 1), f.one(), f.one()};
  if (f.rank(source) != 1 || f.shape(column->outputs[0]) != one_a_head || f.dtype(source) != f.dtype(all))
    return scores;
  sinks = source;
  return (*parts)[0];
}

/// softmax(softcap(query @ key^T * scale) + mask) @ value, of four dims; the softmax may have one more score a head.
bool recognise_attention(AtenBuilder& f) {
  ValueId value = f["other"], weights = before_cut(f, f["self"]);
  const Node* softmax = f.made_by(weights, "aten.softmax.int");
  if (softmax == nullptr || f.rank(value) != 4 || f.rank(weights) != 4) return false;
  const auto* dim = softmax->arguments[1].get_if<int64_t>();
  if (dim == nullptr || (*dim != -1 && *dim != 3) || f.dtype(weights) != f.dtype(value)) return false;
  ValueId sinks, scores = before_sinks(f, AtenBuilder::operand(*softmax, 0), sinks);
  if (sinks.is_valid() != (weights != f["self"]))
    return false;  // a score that is joined and not cut off, or the reverse
  Argument mask;
  if (const Node* sum = f.made_by(scores, "aten.add.Tensor")) {
    ValueId added = AtenBuilder::operand(*sum, 1);
    if (!AtenBuilder::adds_as_is(sum) || f.rank(added) != 4 || f.size(added, 1).as_integer() != 1) return false;
    scores = AtenBuilder::operand(*sum, 0);
    mask = added;
  }
  double softcap = 0, scale = 1;
  scores = before_scale(f, before_softcap(f, scores, softcap), scale);
  const Node* product = f.made_by(scores, "aten.matmul.default");
  const Node* turned = f.made_by(product, 1, "aten.permute.default");
  if (turned == nullptr || numbers(turned->arguments[1]) != std::vector<int64_t>{0, 1, 3, 2}) return false;
  ValueId query = AtenBuilder::operand(*product, 0), key = AtenBuilder::operand(*turned, 0);
  bool fits = f.rank(query) == 4 && f.dtype(query) == f.dtype(value) && f.dtype(key) == f.dtype(value) &&
              f.size(query, 1).as_integer() && f.size(query, 1) == f.size(key, 1) &&
              f.size(key, 1) == f.size(value, 1) && f.size(query, 0) == f.size(key, 0);
  if (!fits) return false;
  return f.replace(f.node(kAttentionSchema,
                          {{"query", query},
                           {"key", before_repeat(f, key)},
                           {"value", before_repeat(f, value)},
                           {"mask", std::move(mask)},
                           {"sinks", sinks.is_valid() ? Argument(sinks) : Argument()},
                           {"scale", scale},
                           {"softcap", softcap},
                           {"window", int64_t{0}}},
                          f.dtype(value), f.result().shape));
}

constexpr RewriteRule kAttentionRecogniser[] = {
    {.op = "aten.matmul.default", .name = "recognise-attention", .apply = write<recognise_attention>}};

constexpr RewriteRule kAttentionRules[] = {
    {.op = "argosy.attention.default", .name = "decompose-attention", .apply = write<decompose_attention>}};

constexpr Structure kAttention = {.schema = kAttentionSchema, .plain = kAttentionRules, .portable = kAttentionRules};

}  // namespace

const Structure& attention_structure() { return kAttention; }

std::span<const RewriteRule> attention_rules() { return kAttentionRecogniser; }

}  // namespace argosy
