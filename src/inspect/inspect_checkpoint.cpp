#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "inspect/inspect.h"

namespace argosy {

void DTypeTotals::add(DType dtype, uint64_t elements, uint64_t bytes) {
  DTypeTotal& total = totals_[dtype];
  total.dtype = dtype;
  total.tensors += 1;
  total.elements += elements;
  total.bytes += bytes;
}

std::vector<DTypeTotal> DTypeTotals::list() const {
  std::vector<DTypeTotal> list;
  for (const auto& [dtype, total] : totals_) list.push_back(total);
  return list;
}

Result<CheckpointReport> inspect_checkpoint(const std::filesystem::path& path, size_t top) {
  ARGOSY_TRY(Checkpoint checkpoint, Checkpoint::open(path));
  CheckpointReport report{std::move(checkpoint), {}, {}};
  std::span<const CheckpointTensor> tensors = report.checkpoint.tensors();
  DTypeTotals totals;
  for (const CheckpointTensor& tensor : tensors) {
    totals.add(tensor.dtype, static_cast<uint64_t>(element_count(tensor.shape).value_or(0)), tensor.bytes);
  }
  report.totals = totals.list();
  std::vector<uint32_t>& order = report.by_size;
  order.resize(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  top = std::min(top, order.size());
  // The checkpoint is sorted by name, so that the index decides among equal sizes.
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(top), order.end(),
                    [&](uint32_t a, uint32_t b) {
                      return tensors[a].bytes != tensors[b].bytes ? tensors[a].bytes > tensors[b].bytes : a < b;
                    });
  order.resize(top);
  return report;
}

}  // namespace argosy
