#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// An operand of Python's arithmetic on sizes, of shape [1].
Ref operand(const NodeTranslator& e, std::string_view name) {
  const Argument& given = e.argument(name);
  if (const double* number = given.get_if<double>()) {
    return e.node("Reshape", {e.builder().scalar(*number, DType::kF64), e.ints({1})});
  }
  return e.size(name);
}

/// Both in the type that Python would compute in.
std::pair<Ref, Ref> promoted_operands(const NodeTranslator& e) {
  Ref a = operand(e, "a"), b = operand(e, "b");
  DType dtype = promote(e.builder().dtype(a), e.builder().dtype(b)).value_or(DType::kF64);
  return {e.cast(a, dtype), e.cast(b, dtype)};
}

// _operator.add(Any a, Any b) -> Any and others, where the trace kept no expression for the result
void emit_operator(const NodeTranslator& e, const Translation& row) {
  auto [a, b] = promoted_operands(e);
  e.yield(e.node(row.onnx_op, {a, b}));
}

void emit_floor_div(const NodeTranslator& e, const Translation&) {
  auto [a, b] = promoted_operands(e);
  Ref rest = e.node("Mod", {a, b});
  e.yield(e.div(e.sub(a, rest), b));
}

void emit_true_div(const NodeTranslator& e, const Translation&) {
  Ref dividend = e.cast(operand(e, "a"), DType::kF64);
  e.yield(e.div(dividend, e.cast(operand(e, "b"), DType::kF64)));
}

void emit_unary(const NodeTranslator& e, const Translation& row) { e.yield(e.node(row.onnx_op, {operand(e, "a")})); }

void emit_to_float(const NodeTranslator& e, const Translation&) { e.yield(e.cast(operand(e, "a"), DType::kF64)); }

void emit_truncated(const NodeTranslator& e, const Translation&) { e.yield(e.cast(operand(e, "x"), DType::kI64)); }

void emit_ite(const NodeTranslator& e, const Translation&) {
  Ref yes = operand(e, "t"), no = operand(e, "f");
  e.yield(e.node("Where", {operand(e, "b"), yes, e.cast(no, e.builder().dtype(yes))}));
}

// sym_size.int(Tensor self, int dim) -> SymInt, where the trace kept no expression
void emit_size(const NodeTranslator& e, const Translation&) {
  int64_t dim = e.dim("dim", e.rank("self"));
  e.yield(e.node("Shape", {e.tensor("self")}, {{"start", dim}, {"end", dim + 1}}));
}

// item(Tensor self) -> Scalar
void emit_item(const NodeTranslator& e, const Translation&) {
  Ref value = e.node("Reshape", {e.tensor("self"), e.ints({1})});
  DType dtype = e.type("self").dtype;
  DType number = dtype == DType::kBool ? DType::kBool : kind_of(dtype) == DTypeKind::kFloat ? DType::kF64 : DType::kI64;
  e.yield(e.cast(value, number));
}

constexpr Translation kNumbers[] = {
    {"_operator.add", emit_operator, "Add"},
    {"_operator.sub", emit_operator, "Sub"},
    {"_operator.mul", emit_operator, "Mul"},
    {"_operator.mod", emit_operator, "Mod", "Mod"},
    {"_operator.pow", emit_operator, "Pow", "Pow"},
    {"_operator.eq", emit_operator, "Equal"},
    {"_operator.lt", emit_operator, "Less"},
    {"_operator.le", emit_operator, "LessOrEqual"},
    {"_operator.gt", emit_operator, "Greater"},
    {"_operator.ge", emit_operator, "GreaterOrEqual"},
    {"_operator.and_", emit_operator, "And", "And"},
    {"_operator.or_", emit_operator, "Or", "Or"},
    {"torch.sym_max", emit_operator, "Max"},
    {"torch.sym_min", emit_operator, "Min"},
    {"_operator.floordiv", emit_floor_div},
    {"_operator.truediv", emit_true_div},
    {"_operator.neg", emit_unary, "Neg"},
    {"torch.sym_not", emit_unary, "Not"},
    {"torch._sym_sqrt", emit_unary, "Sqrt"},
    {"torch.sym_float", emit_to_float},
    {"torch.sym_ite", emit_ite},
    {"math.trunc", emit_truncated},
    {"aten.sym_size.int", emit_size},
    {"aten.item.default", emit_item},
};

}  // namespace

std::span<const Translation> number_translations() { return kNumbers; }

}  // namespace argosy::onnx
