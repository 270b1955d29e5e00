#include <cmath>
#include <limits>
#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// Each head of keys or values once for every query head that shares it.
Ref repeated_heads(const NodeTranslator& e, Ref value, Shape shape, SymExpr heads) {
  auto own = shape[shape.size() - 3].as_integer(), wanted = heads.as_integer();
  if (own == wanted) return value;
  if (!own || !wanted || *own == 0 || *wanted % *own != 0) e.decline("heads of keys do not divide those of queries");
  std::vector<SymExpr> wide(shape.begin(), shape.end()), joined = wide;
  wide.insert(wide.end() - 2, e.number(*wanted / *own));
  joined[joined.size() - 3] = heads;
  std::vector<SymExpr> narrow = wide;
  narrow[narrow.size() - 3] = e.number(1);
  Ref spread = e.unsqueeze(value, {static_cast<int64_t>(shape.size()) - 2});
  return e.reshape(e.expand(spread, narrow, wide), wide, joined);
}

/// What stands for a score that is hidden: the most negative finite number.
Ref lowest_score(const NodeTranslator& e, Ref scores, DType dtype) {
  double lowest = std::numeric_limits<double>::lowest();
  if (dtype == DType::kF32) lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  if (dtype == DType::kF16) lowest = -65504.0;
  if (dtype == DType::kBF16) lowest = -3.3895e38;
  return e.like(scores, lowest);
}

/// Whether each query of a mask may attend to anything; the last dim becomes 1.
Ref sees_something(const NodeTranslator& e, Ref mask, DType dtype) {
  Ints last = {-1};
  if (dtype == DType::kBool) return e.cast(e.reduce("ReduceMax", e.cast(mask, DType::kI32), last, true), dtype);
  return e.node("Greater",
                {e.reduce("ReduceMax", mask, last, true), e.like(mask, -std::numeric_limits<double>::infinity())});
}

// scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.,
//                              bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor
void emit_sdpa(const NodeTranslator& e, const Translation&) {
  Ref query = e.tensor("query"), key = e.tensor("key"), value = e.tensor("value");
  Shape query_shape = e.shape("query"), key_shape = e.shape("key");
  DType dtype = e.type("query").dtype;
  int64_t rank = e.rank("query");
  if (e.constant_number("dropout_p") != 0.0) e.decline("dropout in attention", "export the model in eval() mode");
  if (e.flag("enable_gqa")) {
    SymExpr heads = query_shape[static_cast<size_t>(rank) - 3];
    key = repeated_heads(e, key, key_shape, heads);
    value = repeated_heads(e, value, e.shape("value"), heads);
  }
  Ref keys = e.transpose_last(key, rank);
  if (e.has("scale")) {
    query = e.mul(query, e.scalar("scale", dtype));
  } else if (auto width = query_shape.back().as_integer()) {
    query = e.mul(query, e.like(query, 1.0 / std::sqrt(static_cast<double>(*width))));
  } else {
    query = e.div(query, e.node("Sqrt", {e.cast(e.size(query_shape.back()), dtype)}));
  }
  Ref scores = e.node("MatMul", {query, keys});

  // A query that may attend to nothing gives 0 in torch, where a softmax over -inf alone gives NaN: such rows are
  // computed on a finite number and dropped. `sees` is the same for all layers that share a mask.
  Ref lowest = lowest_score(e, scores, dtype), sees;
  if (e.has("attn_mask")) {
    Ref mask = e.tensor("attn_mask");
    sees = sees_something(e, mask, e.type("attn_mask").dtype);
    scores = e.type("attn_mask").dtype == DType::kBool ? e.node("Where", {mask, scores, lowest})
                                                       : e.node("Max", {e.add(scores, e.cast(mask, dtype)), lowest});
  } else if (e.flag("is_causal")) {
    Ref shape = e.sizes(Shape(
        std::vector<SymExpr>{query_shape[static_cast<size_t>(rank) - 2], key_shape[static_cast<size_t>(rank) - 2]}));
    Ref ones = e.builder().fill(shape, e.builder().scalar(int64_t{1}, DType::kBool));
    Ref lower = e.node("Trilu", {ones}, {{"upper", int64_t{0}}});
    scores = e.node("Where", {lower, scores, lowest});
  }
  Ref output = e.node("MatMul", {e.node("Softmax", {scores}, {{"axis", int64_t{-1}}}), value});
  if (sees.is_valid()) output = e.node("Where", {sees, output, e.like(output, 0)});
  e.yield(output);
}

// rotary(Tensor x, Tensor cos, Tensor sin, int heads, bool pairs) -> Tensor; see passes/structures/rotary.cpp
void emit_rotary(const NodeTranslator& e, const Translation&) {
  Ref x = e.tensor("x"), cos = e.tensor("cos"), sin = e.tensor("sin");
  Shape shape = e.shape("cos"), tokens = e.shape("x").first(2);
  int64_t pairs = e.flag("pairs") ? 1 : 0, heads = e.integer("heads");
  // Of each head so many elements are turned; 0 stands for all.
  int64_t turned = 2 * shape[2].as_integer().value();
  if (heads * turned == e.shape("x")[2].as_integer()) turned = 0;
  if (e.opset() >= kOpsetOfNorms) {
    std::vector<SymExpr> full(shape.begin(), shape.end());
    full[0] = tokens[0];
    if (shape[0] != tokens[0]) {
      cos = e.expand(cos, shape, full);
      sin = e.expand(sin, shape, full);
    }
    return e.yield(e.node("RotaryEmbedding", {x, cos, sin},
                          {{"num_heads", heads}, {"interleaved", pairs}, {"rotary_embedding_dim", turned}}));
  }
  // ONNX Runtime's own takes angles from a table by position: the table has a row for each token.
  std::vector<SymExpr> table = {e.elements(shape.first(2)), shape[2]};
  Ref positions = e.ints({0});  // the first; others follow
  if (shape[0].as_integer() != 1) {
    std::vector<SymExpr> row = {table[0]};
    positions = e.reshape(e.count_up(table[0]), row, tokens);
  }
  Attributes attributes = {{"interleaved", pairs}};
  if (turned != 0) attributes.insert(attributes.end(), {{"num_heads", heads}, {"rotary_embedding_dim", turned}});
  e.yield(e.node("com.microsoft.RotaryEmbedding",
                 {x, positions, e.reshape(cos, shape, table), e.reshape(sin, shape, table)}, std::move(attributes)));
}

constexpr size_t kPlaceOfSinks = 11;  // among the inputs of GroupQueryAttention

bool has_rotary(const LoweringOptions& options) {
  return options.opset >= kOpsetOfNorms || options.runtime_ops.has(RuntimeOp::kRotaryEmbedding);
}

// group_query_attention(Tensor query, Tensor? key, Tensor? value, Tensor past_key, Tensor past_value, Tensor mask,
//                       Tensor? cos, Tensor? sin, Tensor? sinks, int heads, int key_heads, float scale, float softcap,
//                       int window, bool pairs) -> (Tensor, Tensor, Tensor)
void emit_group_query_attention(const NodeTranslator& e, const Translation&) {
  Ref mask = e.tensor("mask");
  // Sizes come from the mask: caches may have room for more than they hold.
  Ref last = e.sub(e.reduce("ReduceSum", mask, {1}, false), e.builder().integer(1));
  Ref total = e.node("Shape", {mask}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  Attributes attributes = {{"num_heads", e.integer("heads")},
                           {"kv_num_heads", e.integer("key_heads")},
                           {"scale", static_cast<float>(e.real("scale"))}};
  if (int64_t window = e.integer("window"); window > 0) attributes.push_back({"local_window_size", window});
  if (double cap = e.real("softcap"); cap != 0) attributes.push_back({"softcap", static_cast<float>(cap)});
  Refs inputs = {e.tensor("query"),
                 e.tensor("key"),
                 e.tensor("value"),
                 e.tensor("past_key"),
                 e.tensor("past_value"),
                 e.cast(last, DType::kI32),
                 e.cast(e.without_dims(total), DType::kI32)};
  if (e.has("cos")) {
    inputs.insert(inputs.end(), {e.tensor("cos"), e.tensor("sin")});
    int64_t is_pairs = e.flag("pairs") ? 1 : 0;
    attributes.insert(attributes.end(), {{"do_rotary", int64_t{1}}, {"rotary_interleaved", is_pairs}});
  }
  if (e.has("sinks")) {
    inputs.resize(kPlaceOfSinks);
    inputs.push_back(e.tensor("sinks"));
  }
  e.yield(e.builder().node("com.microsoft.GroupQueryAttention", std::move(inputs), 3, std::move(attributes)));
}

constexpr size_t kPlaceOfBias = 5;  // what is added to scores, among the inputs of MultiHeadAttention

// multi_head_attention(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? mask, int heads, float scale,
//                      bool causal) -> Tensor
void emit_multi_head_attention(const NodeTranslator& e, const Translation&) {
  Refs inputs = {e.tensor("query"), e.tensor("key"), e.tensor("value"), e.tensor("bias")};
  int64_t heads = e.integer("heads");
  Attributes attributes = {{"num_heads", heads}, {"scale", static_cast<float>(e.real("scale"))}};
  if (e.flag("causal")) attributes.push_back({"unidirectional", int64_t{1}});
  Shape query = e.shape("query"), result = e.result().shape;
  if (!e.has("mask")) {
    if (!e.has("bias")) inputs.pop_back();
    return e.yield(e.node("com.microsoft.MultiHeadAttention", std::move(inputs), std::move(attributes)));
  }
  // The op adds a mask of four dims, the last two in full. All layers that share a mask share this.
  Ref mask = e.tensor("mask");
  DType dtype = e.type("mask").dtype;
  std::vector<SymExpr> own(e.shape("mask").begin(), e.shape("mask").end());
  Ints missing(4 - own.size());
  std::iota(missing.begin(), missing.end(), 0);
  if (!missing.empty()) mask = e.unsqueeze(mask, missing);
  own.insert(own.begin(), missing.size(), e.number(1));
  std::vector<SymExpr> full = {own[0], own[1], query[1], e.shape("key")[1]};
  Ref lowest = lowest_score(e, inputs[0], DType::kF32);
  Ref added = dtype == DType::kBool ? e.node("Where", {mask, e.like(inputs[0], 0), lowest})
                                    : e.node("Max", {e.cast(mask, DType::kF32), lowest});
  if (full != own) added = e.expand(added, own, full);
  inputs.resize(kPlaceOfBias);
  inputs.push_back(added);
  Ref attended = e.node("com.microsoft.MultiHeadAttention", std::move(inputs), std::move(attributes));
  // Queries that see nothing have averaged all values. Multiplied with 0 they are what torch gives.
  Ref sees = e.cast(sees_something(e, mask, dtype), DType::kF32);
  if (own[1].as_integer() == 1) return e.yield(e.mul(attended, e.squeeze(sees, {1})));
  std::vector<SymExpr> by_head = {result[0], result[1], e.number(heads),
                                  e.symbols().floor_div(result[2], e.number(heads))};
  attended = e.mul(e.reshape(attended, result, by_head), e.transpose(sees, {0, 2, 1, 3}));
  e.yield(e.reshape(attended, by_head, result));
}

// linear_attention(Tensor query, Tensor key, Tensor value, Tensor state, Tensor decay, Tensor? beta, int heads)
//                  -> (Tensor, Tensor)
void emit_linear_attention(const NodeTranslator& e, const Translation&) {
  Refs inputs = {e.tensor("query"), e.tensor("key"), e.tensor("value"), e.tensor("state"), e.tensor("decay")};
  if (e.has("beta")) inputs.push_back(e.tensor("beta"));
  e.yield(e.builder().node("com.microsoft.LinearAttention", std::move(inputs), 2,
                           {{"q_num_heads", e.integer("heads")},
                            {"kv_num_heads", e.integer("heads")},
                            {"scale", 1.0F},
                            {"update_rule", std::string(e.has("beta") ? "gated_delta" : "gated")}}));
}

constexpr Translation kAttention[] = {
    {"argosy.rotary.default", emit_rotary, {}, "RotaryEmbedding", has_rotary},
    {"onnx.group_query_attention.default", emit_group_query_attention},
    {"onnx.linear_attention.default", emit_linear_attention},
    {"onnx.multi_head_attention.default", emit_multi_head_attention},
    {"aten.scaled_dot_product_attention.default",
     emit_sdpa,
     {},
     "one Where hides scores, where the decomposition adds a mask"},
};

}  // namespace

std::span<const Translation> attention_translations() { return kAttention; }

}  // namespace argosy::onnx
