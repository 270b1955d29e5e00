#include "driver/backends.h"

#include "base/text.h"
#include "driver/backend_arguments.h"
#include "driver/configured_dtype.h"
#include "driver/executorch/export_executorch.h"
#include "driver/onnx/export_onnx.h"
#include "driver/onnx/own_engine.h"
#include "driver/pt2/export_pt2.h"

namespace argosy {
namespace {

Result<std::unique_ptr<Export>> export_pt2(const ExportInput& input, const ExportDestination& destination,
                                           const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_pt2(input, destination, options.pt2, diagnostics);
}

std::vector<std::string> no_arguments(const BackendOptions&) { return {}; }

std::vector<std::string> arguments_of_onnx(const BackendOptions& options) { return onnx_arguments(options.onnx); }
std::vector<std::string> arguments_of_executorch(const BackendOptions& options) {
  return executorch_arguments(options.executorch);
}

/// What a bundle says that it was made with: what the user asked for, and what is not a default of the backend.
ExportInput with_options(ExportInput input, const std::vector<std::string>& arguments) {
  input.options.insert(input.options.end(), arguments.begin(), arguments.end());
  return input;
}

ExportInput with_onnx_options(const ExportInput& input, const BackendOptions& options) {
  std::vector<std::string> arguments = onnx_arguments(options.onnx);
  const std::string& engine = options.onnx.own_engine ? options.onnx.own_engine->name : options.onnx.engine;
  if (engine != OnnxOptions().engine) arguments.insert(arguments.begin(), format("--for={}", engine));
  return with_options(input, arguments);
}

Result<std::unique_ptr<Export>> export_onnx(const ExportInput& input, const ExportDestination& destination,
                                            const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_onnx(with_onnx_options(input, options), destination, options.onnx, diagnostics);
}

Result<std::unique_ptr<Export>> export_onnx_variants(std::vector<ExportVariant> variants,
                                                     const ExportDestination& destination, Diagnostics& diagnostics) {
  std::vector<OnnxVariant> wanted;
  for (ExportVariant& each : variants)
    wanted.push_back(
        {std::move(each.name), with_onnx_options(each.input, each.options), each.options.onnx, each.is_kept});
  return prepare_onnx_variants(std::move(wanted), destination, diagnostics);
}

Result<std::unique_ptr<Export>> export_executorch(const ExportInput& input, const ExportDestination& destination,
                                                  const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_executorch(with_options(input, executorch_arguments(options.executorch)), destination,
                            options.executorch, diagnostics);
}

constexpr Backend kBackends[] = {
    // Few of ExecuTorch's kernels take bfloat16.
    {"executorch", ".pte", "float32", export_executorch, arguments_of_executorch, true},
    // ONNX Runtime's CPU kernels have no bfloat16.
    {"onnx", ".onnx", "float32", export_onnx, arguments_of_onnx, false, export_onnx_variants},
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
