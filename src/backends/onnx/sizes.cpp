#include "backends/onnx/sizes.h"

#include <algorithm>

namespace argosy::onnx {
namespace {

/// The negated term, if it is a negative number or a product with one in front: a sum then subtracts it.
std::optional<std::pair<int64_t, SymExpr>> negated(SymContext& symbols, SymExpr term) {
  if (auto number = term.as_integer()) {
    if (*number < 0 && *number != INT64_MIN) return std::pair(-*number, symbols.integer(-*number));
    return std::nullopt;
  }
  if (term.kind() != SymKind::kMul) return std::nullopt;
  auto factor = term.operands().front().as_integer();
  if (!factor || *factor >= 0) return std::nullopt;
  return std::pair(*factor, symbols.mul(symbols.integer(-1), term));
}

}  // namespace

void Sizes::add_root(Ref tensor, std::span<const SymExpr> shape) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (!shape[dim].is_valid() || shape[dim].as_integer()) continue;
    Root root{tensor, static_cast<int64_t>(dim), builder_.current_graph()};
    auto [found, is_new] = roots_.try_emplace(shape[dim], root);
    // A dim of a sub-graph's tensor is no use outside of it.
    if (!is_new && !builder_.is_open(found->second.graph)) found->second = root;
    if (is_new) rooted_.clear();
  }
}

void Sizes::define(SymExpr expression, Ref value) {
  known_[expression] = {value, builder_.current_graph()};
  rooted_.clear();
}

bool Sizes::is_rooted(SymExpr expression) {
  auto [found, is_new] = rooted_.try_emplace(expression, false);
  if (!is_new) return found->second;
  bool result = false;
  auto root = roots_.find(expression);
  if (expression.as_integer() || expression.as_boolean()) {
    result = true;
  } else if (root != roots_.end()) {
    result = root->second.graph == 0;
  } else if (auto known = known_.find(expression); known != known_.end()) {
    result = known->second.graph == 0;
  } else if (expression.kind() != SymKind::kSymbol) {
    result = std::ranges::all_of(expression.operands(), [&](SymExpr operand) { return is_rooted(operand); });
  }
  rooted_[expression] = result;
  return result;
}

std::optional<Ref> Sizes::value(SymExpr expression) {
  if (!expression.is_valid()) return std::nullopt;
  if (auto number = expression.as_integer()) return builder_.ints({*number});
  auto known = known_.find(expression);
  if (known != known_.end() && builder_.is_open(known->second.graph)) return known->second.value;
  // What inputs decide is computed in the model's own graph, where every sub-graph sees it.
  bool is_outer = is_rooted(expression);
  std::optional<Ref> result = is_outer ? builder_.in_root([&] { return compute(expression); }) : compute(expression);
  if (result) known_[expression] = {*result, is_outer ? 0 : builder_.current_graph()};
  return result;
}

std::optional<Ref> Sizes::fold(std::string_view op, std::span<const SymExpr> operands) {
  std::optional<Ref> result;
  for (SymExpr operand : operands) {
    std::optional<Ref> next = value(operand);
    if (!next) return std::nullopt;
    result = result ? builder_.node(op, {*result, *next}) : *next;
  }
  return result;
}

std::optional<Ref> Sizes::sum(std::span<const SymExpr> operands) {
  std::vector<SymExpr> added, taken;
  for (SymExpr operand : operands) {
    auto negative = negated(symbols_, operand);
    (negative ? taken : added).push_back(negative ? negative->second : operand);
  }
  if (added.empty()) return fold("Add", operands);
  std::optional<Ref> result = fold("Add", added);
  for (SymExpr operand : taken) {
    std::optional<Ref> next = value(operand);
    if (!result || !next) return std::nullopt;
    result = builder_.node("Sub", {*result, *next});
  }
  return result;
}

std::optional<Ref> Sizes::compute(SymExpr expression) {
  if (auto root = roots_.find(expression); root != roots_.end() && builder_.is_open(root->second.graph)) {
    int64_t dim = root->second.dim;
    return builder_.node("Shape", {root->second.tensor}, {{"start", dim}, {"end", dim + 1}});
  }
  if (auto flag = expression.as_boolean()) {
    return builder_.node("Equal", {builder_.ints({*flag ? 1 : 0}), builder_.ints({1})});
  }
  if (auto real = expression.as_real())
    return builder_.node("Reshape", {builder_.scalar(*real, DType::kF64), builder_.ints({1})});
  std::span<const SymExpr> operands = expression.operands();
  auto binary = [&](std::string_view op) -> std::optional<Ref> {
    std::optional<Ref> a = value(operands[0]), b = value(operands[1]);
    if (!a || !b) return std::nullopt;
    return builder_.node(op, {*a, *b});
  };
  switch (expression.kind()) {
    case SymKind::kAdd: return sum(operands);
    case SymKind::kMul: return fold("Mul", operands);
    case SymKind::kMin: return fold("Min", operands);
    case SymKind::kMax: return fold("Max", operands);
    case SymKind::kAnd: return fold("And", operands);
    case SymKind::kOr: return fold("Or", operands);
    case SymKind::kMod: return binary("Mod");  // Python's: the sign of the divisor
    case SymKind::kFloorDiv: {
      if (symbols_.range(operands[0]).min >= 0 && symbols_.range(operands[1]).min > 0) return binary("Div");
      // ONNX rounds towards zero, Python down.
      std::optional<Ref> a = value(operands[0]), b = value(operands[1]);
      if (!a || !b) return std::nullopt;
      Ref rest = builder_.node("Mod", {*a, *b});
      return builder_.node("Div", {builder_.node("Sub", {*a, rest}), *b});
    }
    case SymKind::kPow: return binary("Pow");
    case SymKind::kTrueDiv: {
      std::optional<Ref> a = value(operands[0]), b = value(operands[1]);
      if (!a || !b) return std::nullopt;
      return builder_.node("Div", {builder_.cast(*a, DType::kF64), builder_.cast(*b, DType::kF64)});
    }
    case SymKind::kEq: return binary("Equal");
    case SymKind::kLt: return binary("Less");
    case SymKind::kLe: return binary("LessOrEqual");
    case SymKind::kGt: return binary("Greater");
    case SymKind::kGe: return binary("GreaterOrEqual");
    case SymKind::kNe: {
      std::optional<Ref> equal = binary("Equal");
      if (!equal) return std::nullopt;
      return builder_.node("Not", {*equal});
    }
    case SymKind::kNot: {
      std::optional<Ref> operand = value(operands[0]);
      if (!operand) return std::nullopt;
      return builder_.node("Not", {*operand});
    }
    case SymKind::kIte: {
      std::optional<Ref> condition = value(operands[0]), yes = value(operands[1]), no = value(operands[2]);
      if (!condition || !yes || !no) return std::nullopt;
      return builder_.node("Where", {*condition, *yes, *no});
    }
    case SymKind::kCall: return call(expression.function_name(), operands);
    default: return std::nullopt;
  }
}

/// torch's functions on sizes beside sympy's, as far as ONNX has them.
std::optional<Ref> Sizes::call(std::string_view name, std::span<const SymExpr> operands) {
  Refs values;
  for (SymExpr operand : operands) {
    std::optional<Ref> next = value(operand);
    if (!next) return std::nullopt;
    values.push_back(*next);
  }
  auto real = [&](size_t i) { return builder_.cast(values[i], DType::kF64); };
  if (values.size() == 1) {
    if (name == "ToFloat") return real(0);
    if (name == "TruncToInt") return builder_.cast(real(0), DType::kI64);
    if (name == "FloorToInt") return builder_.cast(builder_.node("Floor", {real(0)}), DType::kI64);
    if (name == "CeilToInt") return builder_.cast(builder_.node("Ceil", {real(0)}), DType::kI64);
    if (name == "RoundToInt") return builder_.cast(builder_.node("Round", {real(0)}), DType::kI64);
    if (name == "OpaqueUnaryFn_sqrt") return builder_.node("Sqrt", {real(0)});
  } else if (values.size() == 2) {
    if (name == "FloatTrueDiv" || name == "IntTrueDiv") return builder_.node("Div", {real(0), real(1)});
    if (name == "FloatPow") return builder_.node("Pow", {real(0), real(1)});
    if (name == "PowByNatural") return builder_.node("Pow", {values[0], values[1]});
  }
  return std::nullopt;
}

std::optional<Ref> Sizes::shape(std::span<const SymExpr> sizes) {
  Refs parts;
  Ints numbers;  // of neighbours that are numbers
  auto flush = [&] {
    if (!numbers.empty()) parts.push_back(builder_.ints(numbers));
    numbers.clear();
  };
  for (SymExpr size : sizes) {
    if (auto number = size.is_valid() ? size.as_integer() : std::nullopt) {
      numbers.push_back(*number);
      continue;
    }
    flush();
    std::optional<Ref> part = value(size);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  if (parts.empty()) return builder_.ints(numbers);
  flush();
  if (parts.size() == 1) return parts.front();
  return builder_.node("Concat", std::move(parts), {{"axis", int64_t{0}}});
}

}  // namespace argosy::onnx
