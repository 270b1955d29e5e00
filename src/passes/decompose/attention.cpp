#include <cmath>
#include <limits>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// What is added to hide a score: far below any score, and still finite when another number is added to it.
double hidden(DType dtype) {
  if (dtype == DType::kF16) return -32752.0;
  if (dtype == DType::kF64) return std::numeric_limits<double>::lowest() / 2;
  return -1.7e38;
}

/// Keys or values before each head was repeated for the queries that share it: as reshape(expand(unsqueeze(x, 2))).
std::optional<ValueId> before_repeats(AtenBuilder& f, ValueId tensor) {
  if (f.rank(tensor) != 4) return std::nullopt;
  const Node* reshape = f.made_by(tensor, "aten.reshape.default");
  if (reshape == nullptr) return std::nullopt;
  const Node* expand = f.made_by(std::get<ValueId>(reshape->arguments[0].variant()), "aten.expand.default");
  if (expand == nullptr) return std::nullopt;
  const Node* unsqueeze = f.made_by(std::get<ValueId>(expand->arguments[0].variant()), "aten.unsqueeze.default");
  if (unsqueeze == nullptr || unsqueeze->arguments[1] != Argument(int64_t{2})) return std::nullopt;
  ValueId own = std::get<ValueId>(unsqueeze->arguments[0].variant());
  if (f.rank(own) != 4) return std::nullopt;
  std::optional<int64_t> heads = f.size(own, 1).as_integer(), all = f.size(tensor, 1).as_integer();
  bool is_repeat = heads && all && *heads > 0 && *all % *heads == 0 && f.size(own, 0) == f.size(tensor, 0) &&
                   f.size(own, 2) == f.size(tensor, 2) && f.size(own, 3) == f.size(tensor, 3);
  return is_repeat ? std::optional(own) : std::nullopt;
}

struct Mask {
  ValueId added;                // to the scores
  std::optional<ValueId> sees;  // 1 for queries that see something, 0 for others
};

/// Layers that share a mask get equal nodes, which are computed once.
std::optional<Mask> mask_of(AtenBuilder& f, ValueId query, ValueId key) {
  DType dtype = f.dtype(query);
  ValueId zero, low;
  auto choose = [&](ValueId shown) {
    zero = f.scalar(0.0, dtype);
    low = f.scalar(hidden(dtype), dtype);
    return f.where(shown, zero, low);
  };
  if (f.flag("is_causal")) {
    ValueId rows = f.unsqueeze(f.arange(f.size(query, -2), DType::kI64, {query}), 1);
    ValueId columns = f.arange(f.size(key, -2), DType::kI64, {key});
    return Mask{choose(f.compare("ge", rows, columns)), std::nullopt};
  }
  if (!f.has("attn_mask")) return std::nullopt;
  ValueId mask = f["attn_mask"];
  if (f.dtype(mask) == DType::kBool) return Mask{choose(mask), f.cast(f.any(mask, -1, true), dtype)};
  mask = f.cast(mask, dtype);
  ValueId sees = f.compare("gt", f.amax(mask, {-1}, true), Argument(-std::numeric_limits<double>::infinity()));
  return Mask{f.clamp(mask, hidden(dtype), std::nullopt), f.cast(sees, dtype)};
}

/// A query that may attend to nothing gives 0 in torch, where a softmax over -inf alone gives NaN: it is computed on
/// finite numbers and multiplied by 0. Heads of queries that share keys are rows of one product.
bool decompose_attention(AtenBuilder& f) {
  ValueId query = f["query"], key = f["key"], value = f["value"];
  const size_t rank = f.rank(query);
  if (f.number("dropout_p") != 0.0) f.refuse("dropout in attention", "export the model in eval() mode");
  if (rank < 2) return false;
  double scale = 0;
  if (f.has("scale")) {
    std::optional<double> given = f.number("scale");
    if (!given) return false;
    scale = *given;
  } else {
    std::optional<int64_t> width = f.size(query, -1).as_integer();
    if (!width) f.refuse("attention over a width that is not known");
    scale = 1 / std::sqrt(static_cast<double>(*width));
  }
  std::optional<Mask> mask = mask_of(f, query, key);
  const Sizes scores_shape = [&] {
    Sizes all = f.shape(query);
    all.back() = f.size(key, -2);
    return all;
  }();

  std::optional<ValueId> own_key = before_repeats(f, key), own_value = before_repeats(f, value);
  if (own_key && own_value && f.size(*own_key, 1) == f.size(*own_value, 1) && !f.flag("enable_gqa")) {
    key = *own_key;
    value = *own_value;
  }
  bool is_grouped = rank == 4 && f.size(key, 1) != f.size(query, 1);
  ValueId rows = f.mul(query, scale);
  Sizes grouped = f.shape(query);
  if (is_grouped) {
    std::optional<int64_t> heads = f.size(query, 1).as_integer(), own = f.size(key, 1).as_integer();
    if (!heads || !own || *own == 0 || *heads % *own != 0 || f.size(value, 1) != f.size(key, 1)) {
      f.refuse("heads of keys do not divide those of queries");
    }
    grouped[1] = f.size(key, 1);
    grouped[2] = f.symbols().mul(f.integer(*heads / *own), f.size(query, 2));
    rows = f.reshape(rows, grouped);
  }
  ValueId scores = f.matmul(rows, f.transpose(key, -1, -2));
  const Sizes product_shape = f.shape(scores);
  if (mask) {
    if (is_grouped) scores = f.reshape(scores, scores_shape, {query, key});
    scores = f.add(scores, mask->added);
  }
  ValueId weights = f.softmax(scores, -1);
  if (mask && is_grouped) weights = f.reshape(weights, product_shape, {rows, key});
  ValueId result = f.matmul(weights, value);
  if (is_grouped) {
    Sizes all = f.shape(query);
    all.back() = f.size(value, -1);
    result = f.reshape(result, all, {query});
  }
  if (mask && mask->sees) result = f.mul(result, *mask->sees);
  return f.replace(result);
}

/// Attention, and the logarithm of the sum of each row of scores.
bool decompose_flash_attention(AtenBuilder& f) {
  constexpr std::string_view kAttention = aten::kScaledDotProductAttention;
  constexpr std::string_view kLogsumexp = aten::kLogsumexp;
  ValueId query = f["query"], key = f["key"];
  const TensorType result = f.result(0), sums = f.result(1);
  ValueId attention = f.node(kAttention,
                             {{"query", query},
                              {"key", key},
                              {"value", f["value"]},
                              {"attn_mask", f.argument("attn_mask")},
                              {"dropout_p", f.argument("dropout_p")},
                              {"is_causal", f.argument("is_causal")},
                              {"scale", f.argument("scale")}},
                             result.dtype, result.shape);
  if (!f.is_used(1)) return f.replace({attention, f.full(sums.shape, 0.0, sums.dtype, {query})});
  std::optional<int64_t> width = f.size(query, -1).as_integer();
  std::optional<double> scale = f.has("scale") ? f.number("scale") : std::nullopt;
  if (!scale && (f.has("scale") || !width)) return false;
  if (!scale) scale = 1 / std::sqrt(static_cast<double>(*width));
  ValueId scaled = f.mul(query, *scale);
  ValueId scores = f.matmul(scaled, f.transpose(key, -1, -2));
  if (std::optional<Mask> mask = mask_of(f, query, key)) scores = f.add(scores, mask->added);
  ValueId total =
      f.node(kLogsumexp, {{"self", scores}, {"dim", to_list({-1})}}, f.dtype(scores), f.reduced(scores, {-1}, false));
  return f.replace({attention, f.cast(total, sums.dtype)});
}

/// softmax that gives 0 where all is -inf
bool decompose_safe_softmax(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!dim) return false;
  x = f.cast(x, f.result().dtype);
  auto at = static_cast<int64_t>(*dim);
  ValueId sees = f.compare("gt", f.amax(x, {at}, true), Argument(-std::numeric_limits<double>::infinity()));
  ValueId weights = f.softmax(f.clamp(x, hidden(f.dtype(x)), std::nullopt), at);
  return f.replace(f.mul(weights, f.cast(sees, f.dtype(x))));
}

constexpr RewriteRule kAttentionRules[] = {
    {.op = "aten.scaled_dot_product_attention.default",
     .name = "decompose-attention",
     .apply = write<decompose_attention>},
    {.op = "aten._scaled_dot_product_flash_attention_for_cpu.default",
     .name = "decompose-attention",
     .apply = write<decompose_flash_attention>},
    {.op = "aten._safe_softmax.default", .name = "decompose-safe-softmax", .apply = write<decompose_safe_softmax>},
};

}  // namespace

std::span<const RewriteRule> attention() { return kAttentionRules; }

}  // namespace argosy::decompose
