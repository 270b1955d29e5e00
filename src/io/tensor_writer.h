#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "io/output.h"
#include "tensor/source.h"

namespace argosy {

/// A tensor and where in a file its bytes go.
struct PlacedTensor {
  std::string_view name;  // for messages
  const TensorSource* source = nullptr;
  uint64_t offset = 0;
  OutputFile* file = nullptr;
  uint32_t crc = 0;  // of its bytes; set by write_tensors if sums are wanted
};

struct TensorWriteOptions {
  size_t scratch_bytes = size_t{64} << 20;  // all threads together
  int threads = 1;                          // at least 1, the caller's among them
  bool sums = true;                         // whether PlacedTensor::crc is wanted: a third of the work
  /// Told by the caller's thread, after each piece, how many bytes of all tensors are written. May be empty.
  std::function<void(uint64_t done)> progress;
  /// Shown every block of every tensor (whole elements, by index), by any of the threads. May be empty.
  std::function<void(size_t tensor, std::span<const std::byte> block)> observe;
};

/// Writes tensors to their places. Threads take pieces of tensors in turn, read, sum up and write them; the system is
/// told to begin with each piece at once, so that little is left for the sync at the end. The bytes do not depend on
/// the number of threads; of several errors that of the earliest piece is returned.
///
/// Tensors of one file are written in the order given; those of several files in the order in which they lie in what
/// they are read from, so that what files share is read from the disk once.
Status write_tensors(std::span<PlacedTensor> tensors, const TensorWriteOptions& options);

}  // namespace argosy
