#include "tensor/sym.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "tensor/sym_node.h"

namespace argosy {
namespace {

template <class... Handles>
void check_valid(Handles... handles) {
  ARGOSY_CHECK((handles.is_valid() && ...), "an expression handle that names nothing");
}

void check_all_valid(std::span<const SymExpr> handles) {
  for (SymExpr handle : handles) check_valid(handle);
}

}  // namespace

SymKind SymExpr::kind() const {
  check_valid(*this);
  return node_->kind;
}

std::optional<int64_t> SymExpr::as_integer() const {
  return node_ != nullptr && node_->kind == SymKind::kInteger ? std::optional(node_->integer) : std::nullopt;
}

std::optional<double> SymExpr::as_real() const {
  return node_ != nullptr && node_->kind == SymKind::kFloat ? std::optional(node_->real) : std::nullopt;
}

std::optional<bool> SymExpr::as_boolean() const {
  return node_ != nullptr && node_->kind == SymKind::kBoolean ? std::optional(node_->integer != 0) : std::nullopt;
}

std::string_view SymExpr::symbol_name() const {
  return node_ != nullptr && node_->kind == SymKind::kSymbol ? node_->name : std::string_view();
}

std::string_view SymExpr::function_name() const {
  return node_ != nullptr && node_->kind == SymKind::kCall ? node_->name : std::string_view();
}

std::span<const SymExpr> SymExpr::operands() const {
  return node_ != nullptr ? node_->operands : std::span<const SymExpr>();
}

bool SymExpr::is_integer_valued() const { return node_ != nullptr && node_->type == SymType::kInt; }
bool SymExpr::is_boolean_valued() const { return node_ != nullptr && node_->type == SymType::kBool; }

SymContext::SymContext() : store_(std::make_unique<SymStore>()) {}
SymContext::~SymContext() = default;

SymExpr SymContext::integer(int64_t value) { return store_->integer(value); }
SymExpr SymContext::real(double value) { return store_->real(value); }
SymExpr SymContext::boolean(bool value) { return store_->boolean(value); }

SymExpr SymContext::symbol(std::string_view name, SymAssumptions assumptions) {
  ARGOSY_CHECK(!name.empty(), "a symbol without a name");
  return store_->symbol(name, assumptions);
}

SymAssumptions SymContext::assumptions(SymExpr symbol) const {
  check_valid(symbol);
  return SymStore::node(symbol).assumptions;
}

bool SymContext::set_range(SymExpr symbol, SymRange range) {
  check_valid(symbol);
  return store_->set_range(symbol, range);
}

SymRange SymContext::range(SymExpr expression) const {
  check_valid(expression);
  return store_->range(expression);
}

std::vector<SymExpr> SymContext::symbols() const { return store_->symbols(); }

SymExpr SymContext::add(SymExpr a, SymExpr b) { return add(std::vector{a, b}); }

SymExpr SymContext::add(std::span<const SymExpr> operands) {
  check_all_valid(operands);
  return store_->add(operands);
}

SymExpr SymContext::sub(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->sub(a, b);
}

SymExpr SymContext::mul(SymExpr a, SymExpr b) { return mul(std::vector{a, b}); }

SymExpr SymContext::mul(std::span<const SymExpr> operands) {
  check_all_valid(operands);
  return store_->mul(operands);
}

SymExpr SymContext::pow(SymExpr base, SymExpr exponent) {
  check_valid(base, exponent);
  return store_->pow(base, exponent);
}

SymExpr SymContext::min(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->min_max(SymKind::kMin, std::vector{a, b});
}

SymExpr SymContext::max(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->min_max(SymKind::kMax, std::vector{a, b});
}

SymExpr SymContext::floor_div(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->floor_div(a, b);
}

SymExpr SymContext::mod(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->mod(a, b);
}

SymExpr SymContext::true_div(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->true_div(a, b);
}

SymExpr SymContext::compare(SymKind relation, SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->compare(relation, a, b);
}

SymExpr SymContext::logical_and(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->and_or(SymKind::kAnd, std::vector{a, b});
}

SymExpr SymContext::logical_or(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->and_or(SymKind::kOr, std::vector{a, b});
}

SymExpr SymContext::logical_not(SymExpr a) {
  check_valid(a);
  return store_->logical_not(a);
}

SymExpr SymContext::ite(SymExpr condition, SymExpr if_true, SymExpr if_false) {
  check_valid(condition, if_true, if_false);
  return store_->ite(condition, if_true, if_false);
}

SymExpr SymContext::call(std::string_view function, std::span<const SymExpr> arguments) {
  check_all_valid(arguments);
  return store_->call(function, arguments);
}

SymExpr SymContext::substitute(SymExpr expression,
                               const std::function<std::optional<SymExpr>(SymExpr symbol)>& replacement) {
  check_valid(expression);
  return store_->substitute(expression, replacement);
}

std::optional<int64_t> SymContext::evaluate(SymExpr expression,
                                            const std::function<std::optional<int64_t>(SymExpr symbol)>& value) const {
  check_valid(expression);
  return SymStore::evaluate(expression, value);
}

std::optional<bool> SymContext::prove_equal(SymExpr a, SymExpr b) const {
  check_valid(a, b);
  return store_->prove_equal(a, b);
}

std::optional<bool> SymContext::prove(SymExpr condition) const {
  check_valid(condition);
  return store_->prove(condition);
}

bool SymContext::unify(SymExpr a, SymExpr b) {
  check_valid(a, b);
  return store_->unify(a, b);
}

}  // namespace argosy
