#include "backends/executorch/kernels.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace argosy::executorch {
namespace {

// By name, in the order of bytes.
constexpr std::string_view kRegistered[] = {
#include <kernel_list_generated.h>
};

// The library of ops for language models comes with the LLM runner and registers these; it is not in the list above
// because it cannot be loaded without Python.
constexpr std::string_view kLanguageModelKernels[] = {
    "llama::channelwise_gated_delta_rule.out",
    "llama::custom_quantized_sdpa.out",
    "llama::custom_sdpa.out",
    "llama::fast_hadamard_transform.out",
    "llama::gated_delta_rule.out",
    "llama::quantized_moe_ffn.out",
    "llama::sdpa_with_kv_cache.out",
    "llama::update_cache.out",
    "llama::update_cache_with_indices.out",
};

// Overloads whose out form has another name, ops whose kernel has another name, and in-place ops. An empty name: the
// regular one would be that of another overload.
constexpr IrregularKernel kIrregular[] = {
    {"_operator.add", "executorch_prim::add.Scalar"},
    {"_operator.eq", "executorch_prim::eq.Scalar"},
    {"_operator.floordiv", "executorch_prim::floordiv.Scalar"},
    {"_operator.ge", "executorch_prim::ge.Scalar"},
    {"_operator.gt", "executorch_prim::gt.Scalar"},
    {"_operator.le", "executorch_prim::le.Scalar"},
    {"_operator.lt", "executorch_prim::lt.Scalar"},
    {"_operator.mod", "executorch_prim::mod.Scalar"},
    {"_operator.mul", "executorch_prim::mul.Scalar"},
    {"_operator.neg", "executorch_prim::neg.Scalar"},
    {"_operator.not_", "executorch_prim::sym_not.Scalar"},
    {"_operator.sub", "executorch_prim::sub.Scalar"},
    {"_operator.truediv", "executorch_prim::truediv.Scalar"},
    {"aten._local_scalar_dense.default", "aten::_local_scalar_dense"},
    {"aten._unsafe_view.default", "aten::view_copy.out"},
    {"aten.any.default", "aten::any.all_out"},
    {"aten.any.dim", "aten::any.out"},
    {"aten.arange.start", ""},
    {"aten.arange.start_step", "aten::arange.start_out"},
    {"aten.copy_.default", "aten::copy_"},
    {"aten.div.Tensor_mode", "aten::div.out_mode"},
    {"aten.empty.memory_format", "aten::empty.out"},
    {"aten.index_put_.default", "aten::index_put_"},
    {"aten.item.default", "aten::_local_scalar_dense"},
    {"aten.log_softmax.int", "aten::_log_softmax.out"},
    {"aten.max.default", "aten::max.unary_out"},
    {"aten.max.dim", "aten::max.dim_max"},
    {"aten.mean.default", "aten::mean.dtype_out"},
    {"aten.mean.dim", "aten::mean.out"},
    {"aten.min.default", "aten::min.unary_out"},
    {"aten.min.dim", "aten::min.dim_min"},
    {"aten.prod.dim_int", "aten::prod.int_out"},
    {"aten.reshape.default", "aten::view_copy.out"},
    {"aten.softmax.int", "aten::_softmax.out"},
    {"aten.sum.dim_IntList", "aten::sum.IntList_out"},
    {"aten.sym_numel.default", "aten::sym_numel"},
    {"aten.sym_size.int", "aten::sym_size.int"},
    {"aten.to.dtype", "aten::_to_copy.out"},
    {"aten.topk.default", "aten::topk.values"},
    {"aten.var.default", ""},
    {"aten.var.dim", "aten::var.out"},
    {"builtins.round", "executorch_prim::round.Scalar"},
    {"math.ceil", "executorch_prim::ceil.Scalar"},
    {"math.trunc", "executorch_prim::trunc.Scalar"},
    {"torch.sym_float", "executorch_prim::sym_float.Scalar"},
    {"torch.sym_int", "executorch_prim::sym_int.Scalar"},
    {"torch.sym_ite", "executorch_prim::sym_ite.Scalar"},
    {"torch.sym_max", "executorch_prim::sym_max.Scalar"},
    {"torch.sym_min", "executorch_prim::sym_min.Scalar"},
    {"torch.sym_not", "executorch_prim::sym_not.Scalar"},
};

// Ops that are decomposed although they have a kernel, and why. By name.
struct Declined {
  std::string_view op, why;
};
constexpr Declined kDeclined[] = {
    {"_operator.mod", "the rest has the sign of what is divided; Python gives it that of the divisor"},
    {"aten._cdist_forward.default", "a product is faster than a loop over pairs"},
    {"aten._native_batch_norm_legit_no_training.default", "a product and a sum can be delegated"},
    {"aten.constant_pad_nd.default", "the kernel only adds; less than nothing is cut off"},
    {"aten.remainder.Scalar", "of integers the kernel gives the rest the sign of what is divided"},
    {"aten.remainder.Tensor", "of integers the kernel gives the rest the sign of what is divided"},
    {"aten.sign.default", "the kernel keeps NaN, where torch gives 0"},
    {"aten.split_with_sizes.default", "slices that nobody reads cost nothing"},
};

template <size_t Size>
const std::string_view* find(const std::string_view (&names)[Size], std::string_view name) {
  const auto* found = std::ranges::lower_bound(names, name);
  return found != std::end(names) && *found == name ? found : nullptr;
}

/// Searches all lists; the result is valid for ever.
const std::string_view* find(std::string_view name) {
  const std::string_view* found = find(kRegistered, name);
  return found ? found : find(kLanguageModelKernels, name);
}

}  // namespace

bool has_kernel(std::string_view name) { return find(name) != nullptr; }

bool takes(const Program& program, const Component&, const Graph&, const Node& node) {
  std::string_view op = program.schemas[node.op].name;
  return kernel_for(op).has_value() && std::ranges::find(kDeclined, op, &Declined::op) == std::end(kDeclined);
}

std::span<const IrregularKernel> irregular_kernels() { return kIrregular; }

std::optional<std::string_view> kernel_for(std::string_view op) {
  const auto* irregular = std::ranges::lower_bound(kIrregular, op, {}, &IrregularKernel::op);
  if (irregular != std::end(kIrregular) && irregular->op == op) {
    if (irregular->kernel.empty()) return std::nullopt;
    return irregular->kernel;
  }
  size_t first = op.find('.'), last = op.rfind('.');
  if (first == last || first == op.npos) return std::nullopt;
  std::string_view space = op.substr(0, first), name = op.substr(first + 1, last - first - 1);
  std::string_view overload = op.substr(last + 1);
  // Views have kernels that copy.
  for (std::string_view copy : {"", "_copy"}) {
    if (overload != "default") {
      if (const auto* found = find(format("{}::{}{}.{}_out", space, name, copy, overload))) return *found;
    }
    // Of several overloads the plain out form belongs to the one on tensors.
    if (overload == "default" || overload == "Tensor") {
      if (const auto* found = find(format("{}::{}{}.out", space, name, copy))) return *found;
    }
  }
  return std::nullopt;
}

}  // namespace argosy::executorch
