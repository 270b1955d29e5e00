#include "frontends/pt2/storage.h"

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

enum class Aliasing { kFresh, kOperand, kUnknown };

const TensorType* tensor_of(const Graph& graph, const Argument& argument) {
  const ValueId* value = argument.get_if<ValueId>();
  return value == nullptr ? nullptr : graph[*value].tensor();
}

// What is known of an output that shares memory with its operand only under a condition.
Aliasing conditional(std::string_view base, const OpSchema& schema, const Graph& graph,
                     std::span<const Argument> arguments, const NewValue& output) {
  const TensorType* operand = arguments.empty() ? nullptr : tensor_of(graph, arguments[0]);
  const TensorType* result = std::get_if<TensorType>(&output.type);
  if (operand == nullptr || result == nullptr) return Aliasing::kUnknown;
  // A change of dtype is a copy; without one it depends on device, layout and `copy`.
  if (base == "to" || base == "type_as") return operand->dtype != result->dtype ? Aliasing::kFresh : Aliasing::kUnknown;
  // Row-major tensors are reshaped and made contiguous in place.
  if (base == "reshape" || base == "flatten" || base == "reshape_as" || base == "ravel" || base == "_reshape_alias")
    return operand->strides.empty() ? Aliasing::kOperand : Aliasing::kUnknown;
  if (base == "contiguous") {
    std::optional<uint32_t> format = schema.find_argument("memory_format");
    bool is_row_major = format && arguments[*format] == Argument(MemoryFormat::kContiguous);
    return is_row_major && operand->strides.empty() ? Aliasing::kOperand : Aliasing::kUnknown;
  }
  if (base == "dropout" || base == "feature_dropout" || base == "alpha_dropout") {
    std::optional<uint32_t> train = schema.find_argument("train");
    return train && arguments[*train] == Argument(false) ? Aliasing::kOperand : Aliasing::kUnknown;
  }
  return Aliasing::kUnknown;
}

/// The storage of the operand in that alias set; invalid if it is a list, or unknown itself.
StorageId operand_storage(const OpSchema& schema, std::string_view alias, const Graph& graph,
                          std::span<const Argument> arguments) {
  for (size_t i = 0; i < schema.arguments.size() && i < arguments.size(); ++i) {
    if (schema.arguments[i].alias != alias) continue;
    const ValueId* value = arguments[i].get_if<ValueId>();
    return value == nullptr ? StorageId{} : graph[*value].storage;
  }
  return {};
}

}  // namespace

void StorageAssigner::assign(const OpSchema& schema, const Graph& graph, std::span<const Argument> arguments,
                             std::vector<NewValue>& outputs) {
  std::string_view base = aten_base(schema.name);
  bool is_view = std::ranges::find(kViews, base) != std::end(kViews);
  bool is_silent = std::ranges::find(kSilentAliases, base) != std::end(kSilentAliases);
  // Sub-graphs may pass their operands through.
  bool is_higher_order = schema.name.starts_with("higher_order.");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!std::holds_alternative<TensorType>(outputs[i].type)) continue;
    const SchemaReturn* result = nullptr;
    if (!schema.returns.empty()) {
      bool is_list = schema.returns.size() == 1 && schema.returns[0].type.is_list;
      if (is_list || i < schema.returns.size()) result = &schema.returns[is_list ? 0 : i];
    }
    if (is_higher_order || result == nullptr) continue;
    std::string_view alias = result->alias;
    Aliasing aliasing = Aliasing::kFresh;
    if (!alias.empty() && (result->is_written || is_view)) {
      aliasing = Aliasing::kOperand;
    } else if (!alias.empty() || is_silent) {
      aliasing = conditional(base, schema, graph, arguments, outputs[i]);
      if (alias.empty() && aliasing == Aliasing::kOperand) {
        outputs[i].storage = graph[*arguments[0].get_if<ValueId>()].storage;
        continue;
      }
    }
    if (aliasing == Aliasing::kFresh) outputs[i].storage = fresh();
    if (aliasing == Aliasing::kOperand) outputs[i].storage = operand_storage(schema, alias, graph, arguments);
  }
}

}  // namespace argosy
