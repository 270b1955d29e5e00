#include "passes/aten_builder.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

constexpr std::string_view kMul = "_operator.mul(Any a, Any b) -> Any";

SymType truth(AtenBuilder& f) { return std::get<SymType>(f.result_type()); }

/// A product of a size with itself.
bool decompose_power(AtenBuilder& f) {
  constexpr int64_t kMost = 8;
  std::optional<int64_t> exponent = f.integer("b");
  const ValueId* base = f.argument("a").get_if<ValueId>();
  if (!exponent || *exponent < 1 || *exponent > kMost || base == nullptr) return false;
  const SymType* type = f.graph()[*base].number();
  if (type == nullptr || type->kind != SymType::Kind::kInt || !type->expression.is_valid()) return false;
  const SymExpr factor = type->expression;
  ValueId product = *base;
  SymExpr value = factor;
  for (int64_t i = 1; i < *exponent; ++i) {
    value = f.symbols().mul(value, factor);
    product = f.value(kMul, {{"a", product}, {"b", *base}}, SymType{SymType::Kind::kInt, value});
  }
  return f.replace(product);
}

bool decompose_unequal(AtenBuilder& f) {
  ValueId is_equal = f.value("_operator.eq(Any a, Any b) -> Any", {{"a", f.argument("a")}, {"b", f.argument("b")}},
                             SymType{SymType::Kind::kBool, {}});
  return f.replace(f.value("torch.sym_not(Any a) -> Any", {{"a", is_equal}}, truth(f)));
}

/// a and b: if a then b else false; a or b: if a then true else b.
bool decompose_logic(AtenBuilder& f) {
  bool is_and = f.op() == "_operator.and_";
  if (truth(f).kind != SymType::Kind::kBool) return false;
  const Argument a = f.argument("a"), b = f.argument("b");
  return f.replace(f.value("torch.sym_ite(Any b, Any t, Any f) -> Any",
                           {{"b", a}, {"t", is_and ? b : Argument(true)}, {"f", is_and ? Argument(false) : b}},
                           truth(f)));
}

constexpr RewriteRule kSizeArithmeticRules[] = {
    {.op = "_operator.pow", .name = "decompose-power", .apply = write<decompose_power>},
    {.op = "_operator.ne", .name = "decompose-unequal", .apply = write<decompose_unequal>},
    {.op = "_operator.and_", .name = "decompose-logic", .apply = write<decompose_logic>},
    {.op = "_operator.or_", .name = "decompose-logic", .apply = write<decompose_logic>},
};

}  // namespace

std::span<const RewriteRule> size_arithmetic() { return kSizeArithmeticRules; }

}  // namespace argosy::decompose
