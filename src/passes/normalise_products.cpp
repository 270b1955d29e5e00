#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// In alphabetical order.
constexpr Synonym kProductsSynonyms[] = {
    {"aten.dot.default", aten::kMatmul},
    {"aten.ger.default", aten::kOuter},
    {"aten.linalg_matmul.default", aten::kMatmul},
    {"aten.mv.default", aten::kMatmul},
};

constexpr auto kProductsSynonymRules = synonym_rules(kProductsSynonyms);

ValueId scaled(AtenBuilder& f, ValueId tensor, std::string_view factor) {
  if (f.number(factor) == 1) return tensor;
  return f.node(aten::kMulScalar, {{"self", tensor}, {"other", f.argument(factor)}}, f.dtype(tensor), f.shape(tensor));
}

/// beta * self + alpha * product
bool add_product(AtenBuilder& f, ValueId product) {
  product = scaled(f, product, "alpha");
  return f.replace(f.number("beta") == 0 ? product : f.add(scaled(f, f["self"], "beta"), product));
}

bool decompose_addmv(AtenBuilder& f) {
  return add_product(f, f.value(aten::kMatmul, {{"self", f["mat"]}, {"other", f["vec"]}}, f.result()));
}

/// The sum of the products of matrices.
bool decompose_addbmm(AtenBuilder& f) {
  if (f.rank(f["batch1"]) != 3 || f.rank(f["batch2"]) != 3) return false;
  return add_product(f, f.sum(f.matmul(f["batch1"], f["batch2"]), {0}, false));
}

bool decompose_chain(AtenBuilder& f) {
  const ValueList matrices = f.tensors("matrices");
  auto is_matrix = [&](ValueId tensor) { return f.rank(tensor) == 2; };
  if (matrices.empty() || !std::ranges::all_of(matrices, is_matrix)) return false;
  ValueId product = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i) product = f.matmul(product, matrices[i]);
  return f.replace(product);
}

/// Products along the last dims of both.
bool decompose_inner(AtenBuilder& f) {
  ValueId other = f["other"];
  if (f.rank(other) > 2 || f.rank(other) == 0 || f.rank(f["self"]) == 0) return false;
  if (f.rank(other) == 2) other = f.transpose(other, 0, 1);
  return f.become(aten::kMatmul, {{"self", f["self"]}, {"other", other}});
}

/// Element i is a[i+1] * b[i+2] - a[i+2] * b[i+1], indices modulo 3.
bool decompose_cross(AtenBuilder& f) {
  const TensorType result = f.result();
  std::optional<size_t> dim = f.dim("dim", result.shape.size());
  for (size_t i = 0; i < result.shape.size() && !f.has("dim") && !dim; ++i) {
    if (result.shape[i].as_integer() == 3) dim = i;
  }
  if (!dim) return false;
  auto from_back = static_cast<int64_t>(*dim) - static_cast<int64_t>(result.shape.size());
  auto rolled = [&](ValueId x, int64_t by) {
    return f.node(aten::kRoll, {{"self", x}, {"shifts", IntList{-by}}, {"dims", IntList{from_back}}}, f.dtype(x),
                  f.shape(x));
  };
  ValueId products[2];
  for (int64_t i = 0; i < 2; ++i) {
    ValueId left = rolled(f["self"], i + 1);
    products[i] = f.mul(left, rolled(f["other"], 2 - i));
  }
  return f.replace(f.sub(products[0], products[1]));
}

/// Each element of one tensor times all of the other: dims of both alternate and are merged in pairs.
bool decompose_kron(AtenBuilder& f) {
  const Sizes shape = f.result().shape;
  const size_t rank = shape.size();
  ValueId factors[2] = {f["self"], f["other"]};
  bool is_known = std::ranges::all_of(shape, [](SymExpr size) { return size.as_integer().has_value(); });
  if (f.rank(factors[0]) != rank || f.rank(factors[1]) != rank || !is_known) return false;
  for (size_t which = 0; which < 2; ++which) {
    Sizes wide(2 * rank, f.one());
    for (size_t i = 0; i < rank; ++i) wide[2 * i + which] = f.shape(factors[which])[i];
    factors[which] = f.reshape(factors[which], std::move(wide));
  }
  return f.replace(f.reshape(f.mul(factors[0], factors[1]), shape));
}

/// One operand of a contraction as a matrix: what is summed over comes last, in the given order.
struct Contracted {
  ValueId matrix;
  Sizes free;  // sizes of dims that stay
};

std::optional<Contracted> contracted(AtenBuilder& f, std::string_view operand, std::string_view list) {
  ValueId tensor = f[operand];
  const Sizes shape = f.shape(tensor);
  std::optional<std::vector<int64_t>> given = numbers(f.argument(list));
  if (!given) return std::nullopt;
  std::vector<int64_t> dims = given->empty() ? *given : f.dims(list, shape.size()), order;
  SymExpr inner = f.one(), outer = f.one();
  for (int64_t dim : dims) inner = f.symbols().mul(inner, f.size(tensor, dim));
  if (!inner.as_integer()) return std::nullopt;
  Contracted result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (std::ranges::count(dims, static_cast<int64_t>(i)) > 0) continue;
    order.push_back(static_cast<int64_t>(i));
    result.free.push_back(shape[i]);
    outer = f.symbols().mul(outer, shape[i]);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  result.matrix = f.reshape(f.permute(tensor, order), {outer, inner});
  return result;
}

bool decompose_tensordot(AtenBuilder& f) {
  std::optional<Contracted> left = contracted(f, "self", "dims_self"), right = contracted(f, "other", "dims_other");
  if (!left || !right) return false;
  ValueId product = f.matmul(left->matrix, f.transpose(right->matrix, 0, 1));
  Sizes shape = left->free;
  shape.insert(shape.end(), right->free.begin(), right->free.end());
  return f.replace(f.reshape(product, std::move(shape), {f["self"], f["other"]}));
}

constexpr RewriteRule kProductsRules[] = {
    {.op = "aten.addbmm.default", .name = "decompose-addbmm", .apply = write<decompose_addbmm>},
    {.op = "aten.addmv.default", .name = "decompose-addmv", .apply = write<decompose_addmv>},
    {.op = "aten.chain_matmul.default", .name = "decompose-chain", .apply = write<decompose_chain>},
    {.op = "aten.cross.default", .name = "decompose-cross", .apply = write<decompose_cross>},
    {.op = "aten.inner.default", .name = "decompose-inner", .apply = write<decompose_inner>},
    {.op = "aten.kron.default", .name = "decompose-kron", .apply = write<decompose_kron>},
    {.op = "aten.linalg_cross.default", .name = "decompose-cross", .apply = write<decompose_cross>},
    {.op = "aten.tensordot.default", .name = "decompose-tensordot", .apply = write<decompose_tensordot>},
};

}  // namespace

std::span<const RewriteRule> product_rules() { return kProductsRules; }
std::span<const RewriteRule> product_synonyms() { return kProductsSynonymRules; }

}  // namespace argosy
