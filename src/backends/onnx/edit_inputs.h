#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/onnx/document.h"
#include "base/result.h"

namespace argosy::onnx {

/// A dim that inputs and outputs call `from` is called `to`; none of them may be called that already. Nothing happens
/// if there is no such dim.
Status rename_dim(Model& model, std::string_view from, std::string_view to);

/// The inputs of these names become the last ones, in this order.
Status order_inputs(Model& model, std::span<const std::string> names);

/// The input is of that dtype ("bool") for callers; the model casts it to its own.
Status cast_input(Model& model, std::string_view name, std::string_view dtype);

/// The input goes; what it was is one everywhere, in the shape of the input `like`.
Status assume_ones(Model& model, std::string_view name, std::string_view like);

/// An input that may be empty along `dim` may then have any size in its other dims: for callers that do not know the
/// right ones as long as there is nothing to hold. Costs nothing at run time.
Status accept_empty_state(Model& model, std::string_view input, int dim);

}  // namespace argosy::onnx
