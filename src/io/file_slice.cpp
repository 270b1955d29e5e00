#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "io/file.h"
#include "tensor/box.h"
#include "tensor/finite.h"

namespace argosy {
namespace {

// Runs that are shorter than this and repeat within kNearby bytes are read together, a window of the file at a time.
constexpr uint64_t kSmallRun = 4096;
constexpr uint64_t kNearby = 16 * 1024;
constexpr uint64_t kWindow = 64 * 1024;

class FileSlice final : public TensorSource {
 public:
  FileSlice(std::shared_ptr<const ReadFile> file, uint64_t offset, uint64_t size, DType dtype,
            std::vector<int64_t> shape, std::shared_ptr<std::atomic<bool>> has_non_finite)
      : file_(std::move(file)),
        offset_(offset),
        size_(size),
        dtype_(dtype),
        shape_(std::move(shape)),
        has_non_finite_(std::move(has_non_finite)) {}

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  std::string recipe() const override {
    const std::string& path = file_->path().native();
    return format("file({}, {}, {})", quoted(path, path.size()), offset_, tensor_text(dtype_, shape_));
  }
  size_t scratch_for(int64_t) const override { return Scratch::cost(std::min(size_, kWindow)); }
  std::optional<FileRange> file_range() const override { return FileRange{file_->path().native(), offset_, size_}; }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    ARGOSY_TRY_STATUS(read_runs(box, out, scratch));
    if (has_non_finite_ != nullptr && !has_non_finite_->load(std::memory_order_relaxed) &&
        has_non_finite(dtype_, out)) {
      has_non_finite_->store(true, std::memory_order_relaxed);
    }
    return {};
  }

 private:
  uint64_t bytes_of_elements(int64_t elements) const {
    return static_cast<uint64_t>(elements) * static_cast<uint64_t>(bits_of(dtype_)) / 8;
  }

  Status read_runs(const Box& box, std::span<std::byte> out, Scratch& scratch) const {
    ARGOSY_TRY(ReadFile::Lease lease, file_->lease());
    size_t mark = scratch.mark();
    std::span<std::byte> window;
    BoxRuns runs(shape_, box.start, box.extent);
    uint64_t run_bytes = bytes_of_elements(runs.run());
    for (BoxRuns::Strip strip; runs.next(strip);) {
      uint64_t first = bytes_of_elements(strip.offset), step = bytes_of_elements(strip.stride);
      auto count = static_cast<uint64_t>(strip.count);
      if (count > 1 && run_bytes < kSmallRun && step <= kNearby) {
        if (window.empty()) window = scratch.take(std::min(size_, kWindow));
        ARGOSY_TRY_STATUS(read_near_runs(lease, first, step, run_bytes, out.first(run_bytes * count), window));
      } else {
        for (uint64_t i = 0; i < count; ++i) {
          ARGOSY_TRY_STATUS(file_->read(lease, offset_ + first + i * step, out.subspan(i * run_bytes, run_bytes)));
        }
      }
      out = out.subspan(run_bytes * count);
    }
    scratch.release(mark);
    return {};
  }

  /// Reads windows of the file and picks from each the runs that lie in it whole.
  Status read_near_runs(const ReadFile::Lease& lease, uint64_t first, uint64_t step, uint64_t run_bytes,
                        std::span<std::byte> out, std::span<std::byte> window) const {
    uint64_t count = out.size() / run_bytes;
    for (uint64_t done = 0; done < count;) {
      uint64_t fit = std::min(count - done, (window.size() - run_bytes) / step + 1);
      uint64_t begin = first + done * step;
      ARGOSY_TRY_STATUS(file_->read(lease, offset_ + begin, window.first((fit - 1) * step + run_bytes)));
      copy_runs(out.data() + done * run_bytes, static_cast<int64_t>(run_bytes), window.data(),
                static_cast<int64_t>(step), static_cast<int64_t>(run_bytes), static_cast<int64_t>(fit));
      done += fit;
    }
    return {};
  }

  std::shared_ptr<const ReadFile> file_;
  uint64_t offset_;
  uint64_t size_;
  DType dtype_;
  std::vector<int64_t> shape_;
  std::shared_ptr<std::atomic<bool>> has_non_finite_;  // may be null
};

}  // namespace

Result<TensorSourcePtr> file_slice(std::shared_ptr<const ReadFile> file, uint64_t offset, DType dtype,
                                   std::vector<int64_t> shape, std::shared_ptr<std::atomic<bool>> has_non_finite) {
  ARGOSY_TRY(int64_t bytes, checked_tensor_bytes(dtype, shape));
  auto size = static_cast<uint64_t>(bytes);
  if (offset > file->size() || size > file->size() - offset) {
    return fail(ErrorCode::kInvalidInput,
                format("a tensor of {} bytes at byte {} does not lie inside {}, which has {} bytes", size, offset,
                       quoted(file->path().native(), 1000), file->size()));
  }
  return std::make_shared<FileSlice>(std::move(file), offset, size, dtype, std::move(shape), std::move(has_non_finite));
}

}  // namespace argosy
