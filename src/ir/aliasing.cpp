#include "ir/aliasing.h"

#include <algorithm>
#include <iterator>

namespace argosy {
namespace {

// Ops whose annotated outputs are views whatever the operand looks like.
constexpr std::string_view kViews[] = {
    "adjoint",
    "alias",
    "as_strided",
    "broadcast_to",
    "chunk",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "imag",
    "lift_fresh",
    "mH",
    "mT",
    "matrix_H",
    "moveaxis",
    "movedim",
    "narrow",
    "numpy_T",
    "permute",
    "real",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "transpose",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
};

// Ops without an annotation that nevertheless may hand out an operand, or a view of it: torch runs them as a
// composition of others.
constexpr std::string_view kSilentAliases[] = {
    "_unsafe_view",  "alpha_dropout",         "atleast_1d",      "atleast_2d",
    "atleast_3d",    "broadcast_tensors",     "dropout",         "dropout_",
    "einsum",        "feature_alpha_dropout", "feature_dropout", "meshgrid",
    "pixel_shuffle", "pixel_unshuffle",       "sum_to_size",     "type_as",
};

// "aten.split.Tensor" -> "split"; "" for ops of other namespaces.
std::string_view aten_base(std::string_view name) {
  if (!name.starts_with("aten.")) return {};
  name.remove_prefix(5);
  return name.substr(0, name.find('.'));
}

const TensorType* tensor_of(const Graph& graph, const Argument& argument) {
  const ValueId* value = argument.get_if<ValueId>();
  return value == nullptr ? nullptr : graph[*value].tensor();
}

// What is known of an output that shares memory with its operand only under a condition.
Aliasing conditional(std::string_view base, const OpSchema& schema, const Graph& graph,
                     std::span<const Argument> arguments, const ValueType& output) {
  const TensorType* operand = arguments.empty() ? nullptr : tensor_of(graph, arguments[0]);
  const TensorType* result = std::get_if<TensorType>(&output);
  if (operand == nullptr || result == nullptr) return Aliasing::kUnknown;
  // A change of dtype is a copy. Without one it is the operand, unless a copy or an order in memory is asked for; the
  // program is for one device.
  if (base == "to" || base == "type_as") {
    if (operand->dtype != result->dtype) return Aliasing::kFresh;
    std::optional<uint32_t> copy = schema.find_argument("copy"), memory = schema.find_argument("memory_format");
    if (copy && arguments[*copy] != Argument(false)) return Aliasing::kFresh;
    bool keeps_order =
        !memory || arguments[*memory].is<None>() || arguments[*memory] == Argument(MemoryFormat::kPreserve);
    return keeps_order ? Aliasing::kOperand : Aliasing::kUnknown;
  }
  // Row-major tensors are reshaped and made contiguous in place.
  if (base == "reshape" || base == "flatten" || base == "reshape_as" || base == "ravel" || base == "_reshape_alias")
    return operand->strides.empty() ? Aliasing::kOperand : Aliasing::kUnknown;
  if (base == "contiguous") {
    std::optional<uint32_t> memory = schema.find_argument("memory_format");
    bool is_row_major = memory && arguments[*memory] == Argument(MemoryFormat::kContiguous);
    return is_row_major && operand->strides.empty() ? Aliasing::kOperand : Aliasing::kUnknown;
  }
  if (base == "dropout" || base == "feature_dropout" || base == "alpha_dropout") {
    std::optional<uint32_t> train = schema.find_argument("train");
    return train && arguments[*train] == Argument(false) ? Aliasing::kOperand : Aliasing::kUnknown;
  }
  return Aliasing::kUnknown;
}

}  // namespace

OutputAlias alias_of(const OpSchema& schema, const Graph& graph, std::span<const Argument> arguments,
                     const ValueType& output, size_t index) {
  if (!std::holds_alternative<TensorType>(output)) return {};
  // Sub-graphs may pass their operands through, and nobody says what an op without results in its schema does.
  bool is_list = schema.returns.size() == 1 && schema.returns[0].type.is_list;
  if (schema.name.starts_with("higher_order.") || (!is_list && index >= schema.returns.size())) {
    return {Aliasing::kUnknown, std::nullopt};
  }
  const SchemaReturn& result = schema.returns[is_list ? 0 : index];
  std::string_view base = aten_base(schema.name);
  if (result.alias.empty()) {
    if (std::ranges::find(kSilentAliases, base) == std::end(kSilentAliases)) return {};
    return {conditional(base, schema, graph, arguments, output), 0};
  }
  OutputAlias alias;
  for (uint32_t i = 0; i < schema.arguments.size() && i < arguments.size() && !alias.operand; ++i) {
    if (schema.arguments[i].alias == result.alias) alias.operand = i;
  }
  bool is_view = result.is_written || std::ranges::find(kViews, base) != std::end(kViews);
  alias.kind = is_view ? Aliasing::kOperand : conditional(base, schema, graph, arguments, output);
  return alias;
}

}  // namespace argosy
