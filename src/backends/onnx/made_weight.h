#pragma once

#include <string_view>

#include "ir/program.h"
#include "ir/rewriter.h"
#include "passes/aten_builder.h"

namespace argosy::onnx {

/// What was done to weights of experts: rows were put in another order; before that, rows and columns were exchanged.
inline constexpr std::string_view kArranged = "arranged", kTurned = "turned";

/// Whether a value is a weight that one node reads and no other weight is tied to: a new one may take its place.
bool can_be_replaced(const Program& program, const AtenBuilder& f, ValueId value);

/// A weight that no file of the checkpoint has, made from one or more while they are copied. Its names are those of
/// `like`, a weight of the graph, with `what` was done ("joined").
ValueId add_made_weight(Program& program, Rewriter& rewriter, const AtenBuilder& f, ValueId like, std::string_view what,
                        TensorSourcePtr source);

}  // namespace argosy::onnx
