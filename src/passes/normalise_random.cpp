#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// Which random numbers a call gives is not part of a program: only their distribution is kept.

double real(const AtenBuilder& f, std::string_view argument) { return f.number(argument).value_or(0.0); }

bool has_floats(const AtenBuilder& f) { return kind_of(f.result().dtype) == DTypeKind::kFloat; }

ValueId random_like(AtenBuilder& f, std::string_view schema) {
  return f.value(schema, {{"self", f["self"]}}, f.result());
}

bool decompose_uniform(AtenBuilder& f) {
  if (!has_floats(f)) return false;
  double from = real(f, "from"), to = real(f, "to");
  return f.replace(f.add(f.mul(random_like(f, aten::kRandLike), to - from), from));
}

bool decompose_normal(AtenBuilder& f) {
  if (!has_floats(f)) return false;
  return f.replace(f.add(f.mul(random_like(f, aten::kRandnLike), real(f, "std")), real(f, "mean")));
}

/// -log(1 - u) / lambda
bool decompose_exponential(AtenBuilder& f) {
  double rate = real(f, "lambd");
  if (!has_floats(f) || rate == 0) return false;
  ValueId rest = f.value(aten::kRsubScalar, {{"self", random_like(f, aten::kRandLike)}, {"other", 1.0}}, f.result());
  return f.replace(f.mul(f.log(rest), -1.0 / rate));
}

/// Ones with a probability: a number for all, or one for each.
bool decompose_bernoulli(AtenBuilder& f) {
  ValueId numbers =
      f.node(aten::kRandLike, {{"self", f["self"]}, {"dtype", DType::kF32}}, DType::kF32, f.result().shape);
  if (f.knows("p") && f.argument("p").is<double>()) return f.replace(f.compare("lt", numbers, f.argument("p")));
  return f.replace(f.compare("lt", numbers, f.cast(f[f.knows("p") ? "p" : "self"], DType::kF32)));
}

constexpr RewriteRule kRandomRules[] = {
    {.op = "aten.bernoulli.Tensor", .name = "decompose-random", .apply = write<decompose_bernoulli>},
    {.op = "aten.bernoulli.default", .name = "decompose-random", .apply = write<decompose_bernoulli>},
    {.op = "aten.bernoulli.p", .name = "decompose-random", .apply = write<decompose_bernoulli>},
    {.op = "aten.exponential.default", .name = "decompose-random", .apply = write<decompose_exponential>},
    {.op = "aten.normal_functional.default", .name = "decompose-random", .apply = write<decompose_normal>},
    {.op = "aten.uniform.default", .name = "decompose-random", .apply = write<decompose_uniform>},
};

}  // namespace

std::span<const RewriteRule> random_rules() { return kRandomRules; }

}  // namespace argosy
