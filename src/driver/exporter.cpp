#include "argosy/exporter.h"

#include "driver/api_bridge.h"

namespace argosy {
inline namespace v1 {

Result<Capture> Capture::open(const std::filesystem::path& path) {
  Capture capture;
  ARGOSY_TRY(capture.data_, api::open_capture(path));
  return capture;
}

const std::string& Capture::model_class() const { return data_->model_class; }
const std::vector<std::string>& Capture::components() const { return data_->components; }

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  Checkpoint checkpoint;
  ARGOSY_TRY(checkpoint.data_, api::open_checkpoint(path));
  return checkpoint;
}

size_t Checkpoint::tensor_count() const { return api::tensor_count(*data_); }
uint64_t Checkpoint::total_bytes() const { return api::total_bytes(*data_); }

Result<ExportedBundle> OnnxExporter::run(const Capture& capture, const Checkpoint& checkpoint,
                                         const OnnxExportOptions& options) const {
  return api::export_onnx(*capture.data_, *checkpoint.data_, options);
}

}  // namespace v1
}  // namespace argosy
