#include "backends/executorch/writer.h"

namespace argosy::executorch {

Result<Layout> Layout::build(Document, DataPlace) {
  return fail(ErrorCode::kUnsupportedFeature, "programs for ExecuTorch are not written yet");
}

uint64_t Layout::program_bytes() const { return program_bytes_; }
uint64_t Layout::data_bytes() const { return data_bytes_; }

Status Layout::write(const std::filesystem::path&, const std::filesystem::path&, const TensorWriteOptions&) const {
  return fail(ErrorCode::kUnsupportedFeature, "programs for ExecuTorch are not written yet");
}

}  // namespace argosy::executorch
