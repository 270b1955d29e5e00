#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "argosy/export_options.h"
#include "base/result.h"

/// Exports without a command line:
///
///     auto capture = argosy::Capture::open("llama.capture");
///     auto checkpoint = argosy::Checkpoint::open("llama/");
///     auto bundle = argosy::OnnxExporter().run(*capture, *checkpoint, {.output = "out", .weight_plan = "plan.json"});
///
/// What fails is a value with a message and a hint (argosy::to_text). Handles are cheap to copy.
namespace argosy {
namespace api {
struct OpenCapture;
struct OpenCheckpoint;
}  // namespace api

// A namespace of its own: inside the library these names are others'.
inline namespace v1 {

/// Graphs of a model, as `argosy capture` wrote them.
class Capture {
 public:
  static Result<Capture> open(const std::filesystem::path& path);
  const std::string& model_class() const;
  const std::vector<std::string>& components() const;

 private:
  friend class OnnxExporter;
  friend class ExecutorchExporter;
  friend class Pt2Exporter;
  std::shared_ptr<const api::OpenCapture> data_;
};

/// Weights of a model: a folder, an index or a .safetensors file. Opening reads headers only.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& path);
  size_t tensor_count() const;
  uint64_t total_bytes() const;

 private:
  friend class OnnxExporter;
  friend class ExecutorchExporter;
  friend class Pt2Exporter;
  std::shared_ptr<const api::OpenCheckpoint> data_;
};

/// One of several ways in which a folder stores a model: a name that --dtype of the command has ("fp32", "q4"), and the
/// capture in its dtype.
struct OnnxVariant {
  std::string name;
  Capture capture;
  std::filesystem::path weight_plan;  // as that of OnnxExportOptions
};

/// Lowers a capture to ONNX and streams the checkpoint's weights beside it. The output appears when it is complete; an
/// earlier export is replaced, anything else refused. Nothing is compared with the model: `argosy check` does that.
class OnnxExporter {
 public:
  Result<ExportedBundle> run(const Capture& capture, const Checkpoint& checkpoint,
                             const OnnxExportOptions& options) const;
  /// All variants to one folder: in one bundle if the engine tells them by the names of their files, the first being
  /// what it opens by itself, else in a folder each. `options` has neither weight plan, dtype nor quantisation.
  Result<ExportedBundle> run(const std::vector<OnnxVariant>& variants, const Checkpoint& checkpoint,
                             const OnnxExportOptions& options) const;
};

/// The same for ExecuTorch's runtime.
class ExecutorchExporter {
 public:
  Result<ExportedBundle> run(const Capture& capture, const Checkpoint& checkpoint,
                             const ExecutorchExportOptions& options) const;
};

/// The same as programs that torch.export.load reads without transformers.
class Pt2Exporter {
 public:
  Result<ExportedBundle> run(const Capture& capture, const Checkpoint& checkpoint,
                             const Pt2ExportOptions& options) const;
};

}  // namespace v1
}  // namespace argosy
