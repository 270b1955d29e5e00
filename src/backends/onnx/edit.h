#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/onnx/document.h"
#include "base/result.h"

/// Changes at the border of a complete model, for engines that want other names or other shapes there. Each fails if
/// the model has no input or output of a name that it is given.
namespace argosy::onnx {

/// The names of the other inputs and outputs must differ from the new one.
Status rename_input(Model& model, std::string_view from, std::string_view to);
Status rename_output(Model& model, std::string_view from, std::string_view to);

/// The output goes, and with it what computes nothing else.
Status drop_output(Model& model, std::string_view name);

/// Makes the last dim of a state `size` wide for callers: the input is cut to what the model takes, the output is
/// filled up with zeros.
Status widen_state(Model& model, std::string_view input, std::string_view output, int64_t size);

/// Writes an output of fixed sizes but for the first dim only when `last`, another output with the same first dim, is
/// known: for engines that let a state's input and output share memory.
Status postpone_output(Model& model, std::string_view output, std::string_view last);

// ---- for edits in other files

/// Invalid if there is none of that name.
Ref find_input(const Model& model, std::string_view name);
Ref find_output(const Model& model, std::string_view name);
Error no_such_port(const Model& model, std::string_view kind, std::string_view name);

Ref add_value(Model& model, Value value);
/// A constant of the model: 64-bit integers with one dim, or without dims.
Ref add_ints(Model& model, const std::vector<int64_t>& values);
Ref add_integer(Model& model, int64_t value);

/// Gives the input a new value of its own, with the name of the old one, and returns that; the old one is left without
/// a name and a producer, which the caller adds at the front of the graph.
Ref split_input(Model& model, Ref input);
/// The same for an output: the value that callers get is new and wants a producer at the end of the graph.
Ref split_output(Model& model, Ref output);

}  // namespace argosy::onnx
