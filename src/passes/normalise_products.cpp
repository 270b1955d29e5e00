#include <algorithm>

#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

constexpr std::string_view kMatmul = "aten::matmul(Tensor self, Tensor other) -> Tensor";
constexpr std::string_view kRoll = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor";

// In alphabetical order.
constexpr Synonym kSynonyms[] = {
    {"aten.dot.default", kMatmul},
    {"aten.ger.default", "aten::outer(Tensor self, Tensor vec2) -> Tensor"},
    {"aten.linalg_matmul.default", kMatmul},
    {"aten.mv.default", kMatmul},
};

constexpr auto kSynonymRules = synonym_rules(kSynonyms);

Result<ValueId> scaled(Match& match, ValueId tensor, std::string_view factor) {
  if (match[factor] == Argument(int64_t{1}) || match[factor] == Argument(1.0)) return tensor;
  TensorType type = match.emit.type(tensor);
  type.strides.clear();
  return match.emit(aten::kMulScalar, {{"self", tensor}, {"other", match[factor]}}, std::move(type));
}

/// beta * self + alpha * product
Result<bool> add_product(Match& match, ValueId product) {
  ARGOSY_TRY(product, scaled(match, product, "alpha"));
  if (match["beta"] == Argument(int64_t{0}) || match["beta"] == Argument(0.0)) return match.replace(product);
  ARGOSY_TRY(ValueId self, scaled(match, match.tensor("self"), "beta"));
  ARGOSY_TRY(ValueId sum, match.emit(aten::kAddTensor, {{"self", self}, {"other", product}}, match.result()));
  return match.replace(sum);
}

Result<bool> decompose_addmv(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ARGOSY_TRY(ValueId product,
             match.emit(kMatmul, {{"self", match.tensor("mat")}, {"other", match.tensor("vec")}}, match.result()));
  return add_product(match, product);
}

/// The sum of the products of matrices.
Result<bool> decompose_addbmm(RuleContext& context, const RewriteRule&) {
  Match match(context);
  TensorType products = match.result();
  if (products.shape.size() != 2 || match.emit.type(match.tensor("batch1")).shape.empty()) return false;
  products.shape.insert(products.shape.begin(), match.emit.type(match.tensor("batch1")).shape[0]);
  ARGOSY_TRY(ValueId product,
             match.emit(kMatmul, {{"self", match.tensor("batch1")}, {"other", match.tensor("batch2")}}, products));
  ARGOSY_TRY(product, match.emit(aten::kSumDim, {{"self", product}, {"dim", IntList{int64_t{0}}}}, match.result()));
  return add_product(match, product);
}

Result<bool> decompose_chain(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const ValueList matrices = std::get<ValueList>(match["matrices"].variant());
  if (matrices.empty()) return false;
  for (ValueId matrix : matrices) {
    if (match.emit.type(matrix).shape.size() != 2) return false;
  }
  ValueId product = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i) {
    TensorType type{
        match.result().dtype, {match.emit.type(product).shape[0], match.emit.type(matrices[i]).shape[1]}, {}};
    ARGOSY_TRY(product, match.emit(kMatmul, {{"self", product}, {"other", matrices[i]}}, type));
  }
  return match.replace(product);
}

/// Products along the last dims of both.
Result<bool> decompose_inner(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId other = match.tensor("other");
  TensorType type = match.emit.type(other);
  type.strides.clear();
  if (type.shape.size() > 2 || match.emit.type(match.tensor("self")).shape.empty()) return false;
  if (type.shape.size() == 2) {
    std::swap(type.shape[0], type.shape[1]);
    ARGOSY_TRY(other, match.emit(aten::kPermute, {{"self", other}, {"dims", to_list({1, 0})}}, type));
  }
  ARGOSY_TRY(ValueId product, match.emit(kMatmul, {{"self", match.tensor("self")}, {"other", other}}, match.result()));
  return match.replace(product);
}

/// Element i is a[i+1] * b[i+2] - a[i+2] * b[i+1], round and round.
Result<bool> decompose_cross(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  std::optional<size_t> dim = match.dim("dim", result.shape.size());
  for (size_t i = 0; i < result.shape.size() && match["dim"].is<None>() && !dim; ++i) {
    if (result.shape[i].as_integer() == 3) dim = i;
  }
  if (!dim) return false;
  auto from_back = static_cast<int64_t>(*dim) - static_cast<int64_t>(result.shape.size());
  auto rolled = [&](std::string_view operand, int64_t by) -> Result<ValueId> {
    ValueId tensor = match.tensor(operand);
    TensorType type{result.dtype, match.emit.type(tensor).shape, {}};
    return match.emit(kRoll, {{"self", tensor}, {"shifts", IntList{-by}}, {"dims", IntList{from_back}}}, type);
  };
  ValueId products[2];
  for (int64_t i = 0; i < 2; ++i) {
    ARGOSY_TRY(ValueId left, rolled("self", i + 1));
    ARGOSY_TRY(ValueId right, rolled("other", 2 - i));
    ARGOSY_TRY(products[i], match.emit(aten::kMulTensor, {{"self", left}, {"other", right}}, result));
  }
  ARGOSY_TRY(ValueId difference, match.emit(aten::kSubTensor, {{"self", products[0]}, {"other", products[1]}}, result));
  return match.replace(difference);
}

/// Each element of one tensor times all of the other: dims of both by turns, merged by twos.
Result<bool> decompose_kron(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  const size_t rank = result.shape.size();
  TensorType wide{result.dtype, {}, {}};
  ValueId factors[2] = {match.tensor("self"), match.tensor("other")};
  if (match.emit.type(factors[0]).shape.size() != rank || match.emit.type(factors[1]).shape.size() != rank)
    return false;
  for (size_t i = 0; i < rank; ++i) {
    for (ValueId factor : factors) wide.shape.push_back(match.emit.type(factor).shape[i]);
  }
  IntList merged;
  for (SymExpr dim : result.shape) {
    if (!dim.as_integer()) return false;
    merged.emplace_back(*dim.as_integer());
  }
  for (size_t which = 0; which < 2; ++which) {
    TensorType type{result.dtype, std::vector<SymExpr>(2 * rank, match.emit.number(1)), {}};
    IntList sizes(2 * rank, int64_t{1});
    for (size_t i = 0; i < rank; ++i) {
      type.shape[2 * i + which] = match.emit.type(factors[which]).shape[i];
      ARGOSY_TRY(sizes[2 * i + which], match.emit.size(factors[which], static_cast<int64_t>(i)));
    }
    ARGOSY_TRY(factors[which], match.emit(aten::kReshape, {{"self", factors[which]}, {"shape", sizes}}, type));
  }
  ARGOSY_TRY(ValueId product, match.emit(aten::kMulTensor, {{"self", factors[0]}, {"other", factors[1]}}, wide));
  ARGOSY_TRY(product, match.emit(aten::kReshape, {{"self", product}, {"shape", std::move(merged)}}, result));
  return match.replace(product);
}

/// One operand of a contraction as a matrix: what is summed over comes last, in the given order.
struct Contracted {
  ValueId matrix;
  std::vector<int64_t> free;  // dims that stay
};

Result<std::optional<Contracted>> contracted(Match& match, std::string_view operand, std::string_view list) {
  ValueId tensor = match.tensor(operand);
  TensorType type = match.emit.type(tensor);
  std::optional<std::vector<int64_t>> dims = numbers(match[list]);
  if (!dims) return std::optional<Contracted>();
  Contracted result;
  std::vector<int64_t> order;
  int64_t inner = 1;
  for (int64_t& dim : *dims) {
    std::optional<size_t> index = wrap_dim(dim, type.shape.size());
    std::optional<int64_t> size = index ? type.shape[*index].as_integer() : std::nullopt;
    if (!size) return std::optional<Contracted>();
    dim = static_cast<int64_t>(*index);
    inner *= *size;
  }
  SymExpr outer = match.emit.number(1);
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (std::ranges::find(*dims, static_cast<int64_t>(i)) != dims->end()) continue;
    result.free.push_back(static_cast<int64_t>(i));
    outer = match.emit.symbols().mul(outer, type.shape[i]);
  }
  order = result.free;
  order.insert(order.end(), dims->begin(), dims->end());
  TensorType turned{type.dtype, {}, {}};
  for (int64_t dim : order) turned.shape.push_back(type.shape[static_cast<size_t>(dim)]);
  ARGOSY_TRY(result.matrix, match.emit(aten::kPermute, {{"self", tensor}, {"dims", to_list(order)}}, turned));
  TensorType flat{type.dtype, {outer, match.emit.number(inner)}, {}};
  IntList sizes = {outer.as_integer() ? *outer.as_integer() : int64_t{-1}, inner};
  ARGOSY_TRY(result.matrix, match.emit(aten::kReshape, {{"self", result.matrix}, {"shape", sizes}}, flat));
  return std::optional(std::move(result));
}

Result<bool> decompose_tensordot(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ARGOSY_TRY(std::optional<Contracted> left, contracted(match, "self", "dims_self"));
  ARGOSY_TRY(std::optional<Contracted> right, contracted(match, "other", "dims_other"));
  if (!left || !right) return false;
  TensorType turned = match.emit.type(right->matrix);
  std::swap(turned.shape[0], turned.shape[1]);
  ARGOSY_TRY(ValueId other, match.emit(aten::kPermute, {{"self", right->matrix}, {"dims", to_list({1, 0})}}, turned));
  TensorType product_type{match.result().dtype, {match.emit.type(left->matrix).shape[0], turned.shape[1]}, {}};
  ARGOSY_TRY(ValueId product, match.emit(kMatmul, {{"self", left->matrix}, {"other", other}}, product_type));
  IntList sizes;
  for (auto [operand, free] : {std::pair{match.tensor("self"), &left->free}, {match.tensor("other"), &right->free}}) {
    for (int64_t dim : *free) {
      ARGOSY_TRY(IntItem size, match.emit.size(operand, dim));
      sizes.push_back(size);
    }
  }
  ARGOSY_TRY(product, match.emit(aten::kReshape, {{"self", product}, {"shape", std::move(sizes)}}, match.result()));
  return match.replace(product);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.addbmm.default", .name = "decompose-addbmm", .apply = decompose_addbmm},
    {.op = "aten.addmv.default", .name = "decompose-addmv", .apply = decompose_addmv},
    {.op = "aten.chain_matmul.default", .name = "decompose-chain", .apply = decompose_chain},
    {.op = "aten.cross.default", .name = "decompose-cross", .apply = decompose_cross},
    {.op = "aten.inner.default", .name = "decompose-inner", .apply = decompose_inner},
    {.op = "aten.kron.default", .name = "decompose-kron", .apply = decompose_kron},
    {.op = "aten.linalg_cross.default", .name = "decompose-cross", .apply = decompose_cross},
    {.op = "aten.tensordot.default", .name = "decompose-tensordot", .apply = decompose_tensordot},
};

}  // namespace

std::span<const RewriteRule> product_rules() { return kRules; }
std::span<const RewriteRule> product_synonyms() { return kSynonymRules; }

}  // namespace argosy
