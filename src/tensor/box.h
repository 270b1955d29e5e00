#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/source.h"

namespace argosy {

/// Elements of a box.
int64_t box_elements(const Box& box);

/// The same box without its last dim: of rows.
inline Box rows_of(const Box& box) {
  return {{box.start.begin(), box.start.end() - 1}, {box.extent.begin(), box.extent.end() - 1}};
}

/// Throws InternalError unless the box lies inside the source and `out` has exactly its bytes; what read() begins with.
void check_read(const TensorSource& source, const Box& box, size_t out_bytes);

/// The smallest number of elements that is a whole number of bytes: 1, or up to 8 for dtypes of less than 8 bits.
int64_t elements_per_unit(DType dtype);

/// Makes `box` the largest box that begins at element `first` (row-major), has at most `limit` elements and is a
/// contiguous range of the shape; returns its elements. Repeating it with limit = what is left covers any range by at
/// most 2 * rank + 1 boxes. The shape has elements, `first` is one of them, and limit > 0.
int64_t contiguous_box(std::span<const int64_t> shape, int64_t first, int64_t limit, Box& box);

/// Cuts a box into parts of at most `most` elements, contiguous in it and in row-major order, and calls
/// visit(part, elements) for each up to the first error. A box without dims has one element.
template <class F>
Status for_each_part(const Box& box, int64_t most, const F& visit) {
  const int64_t total = box_elements(box);
  Box part;
  for (int64_t done = 0; done < total;) {
    int64_t step = contiguous_box(box.extent, done, std::min(most, total - done), part);
    for (size_t d = 0; d < box.start.size(); ++d) part.start[d] += box.start[d];
    ARGOSY_TRY_STATUS(visit(part, step));
    done += step;
  }
  return {};
}

/// Walks the contiguous runs of a box in row-major order, as strips of equally spaced runs: what a leaf copies.
class BoxRuns {
 public:
  /// `count` runs of run() elements; the first begins at element `offset` of the tensor, the next `stride` later.
  struct Strip {
    int64_t offset = 0;
    int64_t stride = 0;
    int64_t count = 0;
  };

  BoxRuns(std::span<const int64_t> shape, std::span<const int64_t> start, std::span<const int64_t> extent);
  int64_t run() const { return run_; }
  /// False when there are no more strips.
  bool next(Strip& strip);
  /// Whether the box is one contiguous range (or empty).
  bool is_contiguous() const { return rank_ == 0 && strip_.count <= 1; }

 private:
  int64_t run_ = 1;
  Strip strip_;   // the next one
  int rank_ = 0;  // of the loops around strips, outermost first
  int64_t extent_[kMaxTensorRank];
  int64_t stride_[kMaxTensorRank];
  int64_t index_[kMaxTensorRank];
  bool is_done_ = false;
};

/// Copies `count` runs of `run_bytes` bytes, with steps in bytes between the runs on either side. No overlap.
void copy_runs(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t run_bytes,
               int64_t count);

}  // namespace argosy
