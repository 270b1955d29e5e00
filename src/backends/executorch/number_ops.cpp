#include "backends/executorch/number_ops.h"

namespace argosy::executorch {
namespace {

struct Row {
  std::string_view op, kernel;
};

constexpr Row kRows[] = {
    {"_operator.add", "executorch_prim::add.Scalar"},
    {"_operator.sub", "executorch_prim::sub.Scalar"},
    {"_operator.mul", "executorch_prim::mul.Scalar"},
    {"_operator.floordiv", "executorch_prim::floordiv.Scalar"},
    {"_operator.truediv", "executorch_prim::truediv.Scalar"},
    {"_operator.mod", "executorch_prim::mod.Scalar"},
    {"_operator.neg", "executorch_prim::neg.Scalar"},
    {"_operator.eq", "executorch_prim::eq.Scalar"},
    {"_operator.lt", "executorch_prim::lt.Scalar"},
    {"_operator.le", "executorch_prim::le.Scalar"},
    {"_operator.gt", "executorch_prim::gt.Scalar"},
    {"_operator.ge", "executorch_prim::ge.Scalar"},
    {"_operator.not_", "executorch_prim::sym_not.Scalar"},
    {"torch.sym_not", "executorch_prim::sym_not.Scalar"},
    {"torch.sym_max", "executorch_prim::sym_max.Scalar"},
    {"torch.sym_min", "executorch_prim::sym_min.Scalar"},
    {"torch.sym_ite", "executorch_prim::sym_ite.Scalar"},
    {"torch.sym_float", "executorch_prim::sym_float.Scalar"},
    {"torch.sym_int", "executorch_prim::sym_int.Scalar"},
    {"math.ceil", "executorch_prim::ceil.Scalar"},
    {"math.trunc", "executorch_prim::trunc.Scalar"},
    {"builtins.round", "executorch_prim::round.Scalar"},
    {"aten.sym_size.int", "aten::sym_size.int"},
    {"aten.sym_numel.default", "aten::sym_numel"},
    {"aten.item.default", "aten::_local_scalar_dense"},
    {"aten._local_scalar_dense.default", "aten::_local_scalar_dense"},
};

}  // namespace

std::optional<std::string_view> number_kernel(std::string_view op) {
  for (const Row& row : kRows) {
    if (row.op == op) return row.kernel;
  }
  return std::nullopt;
}

}  // namespace argosy::executorch
