#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "io/output.h"
#include "ir/program.h"

namespace argosy {

/// What happens to weights whose bytes are not known.
enum class MissingWeights : uint8_t {
  kRefuse,
  kLeaveEmpty,  // an entry without bytes, which torch.export.load silently takes for zeros
};

struct Pt2WriteOptions {
  std::filesystem::path path;
  size_t scratch_bytes = size_t{64} << 20;
  Overwrite overwrite = Overwrite::kRefuse;
  MissingWeights missing_weights = MissingWeights::kRefuse;
  /// What torch calls example inputs, by component, in its own encoding. A component without gets none.
  std::map<std::string, TensorSourcePtr> sample_inputs;
  /// Told after each block how much is written, and at the end. `total` is that of the entries' contents. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// Writes a program as an archive that torch.export.load reads; each component becomes a model of it. The program must
/// be verified, and its ops known to torch. Weights are streamed with that much scratch, tied and equal ones once. Same
/// program, same bytes. The file appears when it is complete.
Status write_pt2(const Program& program, const Pt2WriteOptions& options);

}  // namespace argosy
