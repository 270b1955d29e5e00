#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "tensor/box.h"
#include "tensor/source.h"

namespace argosy {
namespace {

constexpr int64_t kBlockBytes = int64_t{1} << 20;

}  // namespace

Result<bool> have_equal_bytes(const TensorSource& a, const TensorSource& b, size_t scratch_bytes) {
  ARGOSY_CHECK(a.dtype() == b.dtype() && std::ranges::equal(a.shape(), b.shape()), "tensors of one dtype and shape");
  if (a.recipe() == b.recipe()) return true;
  int64_t total = a.elements(), unit = elements_per_unit(a.dtype());
  int64_t step = std::max(kBlockBytes * 8 / bits_of(a.dtype()) / unit * unit, unit);
  auto block = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(step * bits_of(a.dtype()) / 8));
  bool are_equal = true;
  for (int64_t first = 0; first < total && are_equal; first += step) {
    int64_t count = std::min(step, total - first);
    std::byte* end = block.get();
    ARGOSY_TRY_STATUS(a.stream_range(
        first, count,
        [&](std::span<const std::byte> bytes) -> Status {
          end = std::ranges::copy(bytes, end).out;
          return {};
        },
        scratch_bytes));
    const std::byte* next = block.get();
    ARGOSY_TRY_STATUS(b.stream_range(
        first, count,
        [&](std::span<const std::byte> bytes) -> Status {
          are_equal = are_equal && std::memcmp(next, bytes.data(), bytes.size()) == 0;
          next += bytes.size();
          return {};
        },
        scratch_bytes));
  }
  return are_equal;
}

}  // namespace argosy
