#include "tensor/box.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

// Fixed sizes become single moves instead of calls of memcpy.
template <size_t kBytes>
void copy_fixed(std::byte* __restrict out, int64_t out_step, const std::byte* __restrict in, int64_t in_step,
                int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(out + i * out_step, in + i * in_step, kBytes);
}

}  // namespace

int64_t box_elements(const Box& box) {
  int64_t count = 1;
  for (int64_t extent : box.extent) count *= extent;
  return count;
}

void check_read(const TensorSource& source, const Box& box, size_t out_bytes) {
  std::span<const int64_t> shape = source.shape();
  ARGOSY_CHECK(box.start.size() == shape.size() && box.extent.size() == shape.size(),
               format("box of rank {} of {}", box.start.size(), source.recipe()));
  for (size_t d = 0; d < shape.size(); ++d) {
    bool is_inside = box.start[d] >= 0 && box.extent[d] >= 0 && box.start[d] <= shape[d] - box.extent[d];
    ARGOSY_CHECK(is_inside, format("{} from {} in dim {} of {}", box.extent[d], box.start[d], d, source.recipe()));
  }
  auto bytes = packed_bytes(source.dtype(), box_elements(box));
  ARGOSY_CHECK(bytes && static_cast<size_t>(*bytes) == out_bytes,
               format("{} elements into {} bytes of {}", box_elements(box), out_bytes, source.recipe()));
}

int64_t elements_per_unit(DType dtype) { return 8 / std::gcd(8, bits_of(dtype)); }

int64_t contiguous_box(std::span<const int64_t> shape, int64_t first, int64_t limit, Box& box) {
  size_t rank = shape.size();
  box.start.assign(rank, 0);
  box.extent.assign(rank, 1);
  int64_t rest = first;
  for (size_t d = rank; d-- > 0;) {
    box.start[d] = rest % shape[d];
    rest /= shape[d];
  }
  // Goes outwards as long as the dim inside is whole; what is inside never exceeds the limit.
  int64_t inner = 1;
  for (size_t d = rank; d-- > 0;) {
    int64_t extent = std::min(shape[d] - box.start[d], limit / inner);
    box.extent[d] = extent;
    inner *= extent;
    if (extent != shape[d]) break;
  }
  return inner;
}

BoxRuns::BoxRuns(std::span<const int64_t> shape, std::span<const int64_t> start, std::span<const int64_t> extent) {
  ARGOSY_CHECK(shape.size() <= kMaxTensorRank, format("rank {}", shape.size()));
  // Collects the dims that matter, innermost first; adjacent ones that are walked as one are merged.
  int rank = 0;
  int64_t stride = 1, offset = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    offset += start[d] * stride;
    if (extent[d] == 0) is_done_ = true;
    if (extent[d] != 1) {
      if (rank > 0 && stride_[rank - 1] * extent_[rank - 1] == stride) {
        extent_[rank - 1] *= extent[d];
      } else {
        extent_[rank] = extent[d];
        stride_[rank] = stride;
        ++rank;
      }
    }
    stride *= shape[d];
  }
  if (is_done_) return;
  int first = 0;
  if (first < rank && stride_[first] == 1) run_ = extent_[first++];
  strip_ = {offset, 0, 1};
  if (first < rank) {
    strip_.count = extent_[first];
    strip_.stride = stride_[first++];
  }
  rank_ = rank - first;
  std::reverse(extent_ + first, extent_ + rank);
  std::reverse(stride_ + first, stride_ + rank);
  std::copy(extent_ + first, extent_ + rank, extent_);
  std::copy(stride_ + first, stride_ + rank, stride_);
  std::fill(index_, index_ + rank_, 0);
}

bool BoxRuns::next(Strip& strip) {
  if (is_done_) return false;
  strip = strip_;
  int d = rank_ - 1;
  for (; d >= 0; --d) {
    strip_.offset += stride_[d];
    if (++index_[d] < extent_[d]) break;
    strip_.offset -= stride_[d] * extent_[d];
    index_[d] = 0;
  }
  is_done_ = d < 0;
  return true;
}

void copy_runs(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t run_bytes,
               int64_t count) {
  switch (run_bytes) {
    case 1: return copy_fixed<1>(out, out_step, in, in_step, count);
    case 2: return copy_fixed<2>(out, out_step, in, in_step, count);
    case 4: return copy_fixed<4>(out, out_step, in, in_step, count);
    case 8: return copy_fixed<8>(out, out_step, in, in_step, count);
    case 16: return copy_fixed<16>(out, out_step, in, in_step, count);
    default:
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(out + i * out_step, in + i * in_step, static_cast<size_t>(run_bytes));
      }
  }
}

}  // namespace argosy
