#include "ir/schema.h"

namespace argosy {
namespace {

// Python's operators on sizes work on any mix of symbolic int, float and bool, so their types are left open.
// Higher-order ops have no ATen schema; these name the arguments in the order in which graphs pass them.
constexpr std::string_view kBuiltinSchemas[] = {
    "_operator.add(Any a, Any b) -> Any",
    "_operator.sub(Any a, Any b) -> Any",
    "_operator.mul(Any a, Any b) -> Any",
    "_operator.floordiv(Any a, Any b) -> Any",
    "_operator.truediv(Any a, Any b) -> Any",
    "_operator.mod(Any a, Any b) -> Any",
    "_operator.pow(Any a, Any b) -> Any",
    "_operator.neg(Any a) -> Any",
    "_operator.pos(Any a) -> Any",
    "_operator.eq(Any a, Any b) -> Any",
    "_operator.ne(Any a, Any b) -> Any",
    "_operator.lt(Any a, Any b) -> Any",
    "_operator.le(Any a, Any b) -> Any",
    "_operator.gt(Any a, Any b) -> Any",
    "_operator.ge(Any a, Any b) -> Any",
    "_operator.and_(Any a, Any b) -> Any",
    "_operator.or_(Any a, Any b) -> Any",
    "_operator.xor(Any a, Any b) -> Any",
    "_operator.not_(Any a) -> Any",
    "_operator.lshift(Any a, Any b) -> Any",
    "_operator.rshift(Any a, Any b) -> Any",
    "torch.sym_int(Any a) -> Any",
    "torch.sym_float(Any a) -> Any",
    "torch.sym_max(Any a, Any b) -> Any",
    "torch.sym_min(Any a, Any b) -> Any",
    "torch.sym_ite(Any b, Any t, Any f) -> Any",
    "torch.sym_not(Any a) -> Any",
    "torch.sym_sum(Any args) -> Any",
    "torch._sym_sqrt(Any a) -> Any",
    "math.ceil(Any x) -> Any",
    "math.floor(Any x) -> Any",
    "math.trunc(Any x) -> Any",
    "math.sqrt(Any x) -> Any",
    "builtins.round(Any number) -> Any",
    "higher_order.cond(Any pred, Graph true_graph, Graph false_graph, Any[] operands) -> Any[]",
    "higher_order.while_loop(Graph cond_graph, Graph body_graph, Any[] carried, Any[] additional) -> Any[]",
    "higher_order.wrap_with_set_grad_enabled(Any enable_grad, Graph body, ...) -> Any[]",
    "higher_order.wrap_with_autocast(Any device_type, Any dtype, Any enabled, Any cache_enabled, Graph body, ...) -> "
    "Any[]",
    "higher_order.map_impl(Graph body, Any[] xs, Any[] additional) -> Any[]",
    "higher_order.scan(Graph combine, Any[] init, Any[] xs, Any[] additional) -> Any[]",
    "higher_order.associative_scan(Graph combine, Any[] xs, Any[] additional) -> Any[]",
    // Ours: what another program computes as a whole. Only backends make these.
    "higher_order.delegate(Any backend, Graph body, Any[] operands) -> Any[]",
};

}  // namespace

std::span<const std::string_view> builtin_schemas() { return kBuiltinSchemas; }

}  // namespace argosy
