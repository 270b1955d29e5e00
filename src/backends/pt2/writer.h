#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "backends/pt2/document.h"
#include "base/result.h"
#include "io/output.h"
#include "io/tensor_writer.h"
#include "ir/program.h"

namespace argosy {

/// Writes the archive into an empty file; the caller commits it. Same document, same bytes. `progress` counts the bytes
/// of tensors.
Status write_pt2_document(const Pt2Document& document, OutputFile& file, const TensorWriteOptions& options);

struct Pt2WriteOptions {
  std::filesystem::path path;
  Overwrite overwrite = Overwrite::kRefuse;
  MissingWeights missing_weights = MissingWeights::kRefuse;
  std::map<std::string, TensorSourcePtr> sample_inputs;  // as Pt2DocumentOptions
  size_t scratch_bytes = size_t{64} << 20;
  /// Told after each block how much is written, and at the end. `total` is that of the entries' contents. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// Writes a program as an archive that torch.export.load reads; each component becomes a model of it. The program must
/// be verified, and its ops known to torch. Weights are streamed with that much scratch, tied and equal ones once. Same
/// program, same bytes. The file appears when it is complete.
Status write_pt2(const Program& program, const Pt2WriteOptions& options);

}  // namespace argosy
