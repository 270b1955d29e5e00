#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "frontends/schema_library.h"
#include "ir/graph.h"
#include "tensor/source.h"

namespace argosy {

// Python numbers where the schema says Tensor: torch wraps them in a tensor that ranks below all others in promotion.
// Such tensors do not exist in the IR.

/// The overload that takes these arguments as Scalars and computes the same, bit for bit: torch implements it by
/// wrapping the number itself. Empty if there is none.
std::string_view scalar_overload(std::string_view op_name, std::span<const std::string_view> number_arguments);

/// The dtype of a tensor without dims that can stand for a wrapped number beside the other operands of an elementwise
/// op, without changing the result: the dtype that torch computes in, so that promotion stays the same; f32 where that
/// is f16 or bf16 and some operand has dims, since torch then uses the number unrounded, and a float without dims does
/// not promote.
std::optional<DType> wrapped_dtype(const Graph& graph, std::span<const Argument> arguments, const Argument& number);

/// A tensor without dims that holds a constant number.
Result<TensorSourcePtr> number_tensor(const Argument& number, DType dtype);

}  // namespace argosy
