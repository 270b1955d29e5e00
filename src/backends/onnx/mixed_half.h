#pragma once

#include <map>
#include <string>
#include <string_view>

#include "backends/onnx/document.h"
#include "backends/onnx/half_plan.h"
#include "base/result.h"

namespace argosy::onnx {

/// The key of a model's metadata that says what computes in f16; models without it have one type of floats.
inline constexpr std::string_view kMixedHalfKey = "argosy.mixed16";
/// Before the name of a value: an output that is its largest magnitude.
inline constexpr std::string_view kSeenPrefix = "argosy.seen.";

/// Makes nodes of an f32 model compute in f16 as plan_half() says, with casts where types meet. Inputs and outputs stay
/// f32. Weights of products become f16 where they fit, even if the product is f32: a cast widens them. The metadata
/// says what was done.
Status narrow_to_half(Model& model, const std::map<std::string, double>* seen);

/// Adds outputs to an f32 model that tell how large values are which narrow_to_half() asks for.
Status observe_values(Model& model);

/// What was done, in a line: "40 of 52 products compute in float16; …".
std::string half_text(const HalfPlan& plan, bool has_seen);

}  // namespace argosy::onnx
