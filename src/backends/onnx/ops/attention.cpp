#include <cmath>
#include <limits>

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
  Ref lowest = e.like(scores, std::numeric_limits<double>::lowest());
  if (dtype == DType::kF32) lowest = e.like(scores, static_cast<double>(std::numeric_limits<float>::lowest()));
  if (dtype == DType::kF16) lowest = e.like(scores, -65504.0);
  if (dtype == DType::kBF16) lowest = e.like(scores, -3.3895e38);
  Ref sees;
  if (e.has("attn_mask")) {
    Ref mask = e.tensor("attn_mask");
    Ints last = {-1};
    if (e.type("attn_mask").dtype == DType::kBool) {
      scores = e.node("Where", {mask, scores, lowest});
      sees = e.cast(e.reduce("ReduceMax", e.cast(mask, DType::kI32), last, true), DType::kBool);
    } else {
      scores = e.node("Max", {e.add(scores, e.cast(mask, dtype)), lowest});
      sees = e.node("Greater",
                    {e.reduce("ReduceMax", mask, last, true), e.like(mask, -std::numeric_limits<double>::infinity())});
    }
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

constexpr Translation kAttention[] = {
    {"aten.scaled_dot_product_attention.default",
     emit_sdpa,
     {},
     "one Where hides scores, where the decomposition adds a mask"},
};

}  // namespace

std::span<const Translation> attention_translations() { return kAttention; }

}  // namespace argosy::onnx
