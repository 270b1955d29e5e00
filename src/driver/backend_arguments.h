#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/backend_options.h"

/// Options of backends as arguments of a command line, both ways. What one function here writes the other reads.
namespace argosy {

/// Enumerators by the names that commands have for them.
std::map<std::string, onnx::WeightsMode> names_of_weights_modes();
std::map<std::string, onnx::Optimize> names_of_optimizations();
std::map<std::string, QuantizeMethod> names_of_quantize_methods();
std::map<std::string, executorch::Recipe> names_of_recipes();
std::map<std::string, executorch::LinearEncoding> names_of_linear_encodings();
std::map<std::string, executorch::EmbeddingEncoding> names_of_embedding_encodings();
std::map<std::string, executorch::ConvolutionEncoding> names_of_convolution_encodings();

/// All options that change the files and are not the defaults.
std::vector<std::string> onnx_arguments(const OnnxOptions& options);
std::vector<std::string> executorch_arguments(const ExecutorchOptions& options);

/// Each argument is "--name=value" or, of a switch, "--name". A name that a backend lacks, or a value that is none, is
/// an error; so are schemes of packages, which take a process of Python.
Status read_onnx_arguments(std::span<const std::string> arguments, OnnxOptions& options);
Status read_executorch_arguments(std::span<const std::string> arguments, ExecutorchOptions& options);

}  // namespace argosy
