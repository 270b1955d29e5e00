#include "driver/backends.h"

#include "base/text.h"
#include "driver/configured_dtype.h"
#include "driver/export_executorch.h"
#include "driver/export_onnx.h"
#include "driver/export_pt2.h"

namespace argosy {
namespace {

Result<std::unique_ptr<Export>> export_pt2(const ExportInput& input, const ExportDestination& destination,
                                           const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_pt2(input, destination, options.pt2_hooks, diagnostics);
}

Result<std::unique_ptr<Export>> export_onnx(const ExportInput& input, const ExportDestination& destination,
                                            const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_onnx(input, destination, options.onnx, diagnostics);
}

Result<std::unique_ptr<Export>> export_executorch(const ExportInput& input, const ExportDestination& destination,
                                                  const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_executorch(input, destination, options.executorch, diagnostics);
}

std::vector<std::string> no_arguments(const BackendOptions&) { return {}; }

std::vector<std::string> onnx_arguments(const BackendOptions& options) {
  std::vector<std::string> arguments;
  if (options.onnx.lowering.opset != onnx::kDefaultOpset)
    arguments.push_back(format("--opset={}", options.onnx.lowering.opset));
  if (!options.onnx.lowering.optimize) arguments.emplace_back("--optimize=off");
  return arguments;
}

std::vector<std::string> executorch_arguments(const BackendOptions& options) {
  std::vector<std::string> arguments;
  if (options.executorch.lowering.recipe != executorch::Recipe::kXnnpack) arguments.emplace_back("--recipe=portable");
  return arguments;
}

constexpr Backend kBackends[] = {
    // Kernels of ExecuTorch take bfloat16 here and there only.
    {"executorch", ".pte", "float32", export_executorch, executorch_arguments, true},
    // ONNX Runtime's CPU kernels have no bfloat16.
    {"onnx", ".onnx", "float32", export_onnx, onnx_arguments},
    {"pt2", ".pt2", "auto", export_pt2, no_arguments},
};

}  // namespace

std::span<const Backend> all_backends() { return kBackends; }

const Backend* find_backend(std::string_view name) {
  for (const Backend& backend : kBackends) {
    if (backend.name == name) return &backend;
  }
  return nullptr;
}

Result<std::string> export_dtype(const Backend& backend, const std::filesystem::path& model, const std::string& asked) {
  if (asked != "auto" || backend.dtype_for_bfloat16 == "auto") return asked;
  ARGOSY_TRY(std::string dtype, configured_dtype(model));
  return dtype == "bfloat16" ? std::string(backend.dtype_for_bfloat16) : asked;
}

}  // namespace argosy
