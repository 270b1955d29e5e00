#include "io/tensor_writer.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "io/crc32.h"
#include "tensor/box.h"

namespace argosy {
namespace {

// A piece is what a thread takes at once; a block is read, summed up and written while it is in the processor's cache.
constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr size_t kBlockBytes = size_t{384} << 10;
constexpr size_t kLargeBlockBytes = size_t{16} << 20;

struct Piece {
  size_t tensor;
  int64_t first, count;  // elements
};

uint64_t bytes_of(const TensorSource& source, int64_t elements) {
  return static_cast<uint64_t>(elements) * static_cast<uint64_t>(bits_of(source.dtype())) / 8;
}

/// Recipes that gather from afar read less often with larger blocks; what lies in one file does not care.
size_t wanted_scratch(const TensorSource& source) { return source.file_range() ? kBlockBytes : kLargeBlockBytes; }

class TensorWriter {
 public:
  TensorWriter(std::span<PlacedTensor> tensors, OutputFile& file, const TensorWriteOptions& options)
      : tensors_(tensors), file_(file), options_(options) {
    for (size_t i = 0; i < tensors.size(); ++i) cut(i);
    crcs_.resize(pieces_.size());
  }

  Status run() {
    size_t count = std::clamp<size_t>(pieces_.size(), 1, static_cast<size_t>(std::max(options_.threads, 1)));
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < count; ++i) threads.emplace_back([this, count] { work(count, false); });
    work(count, true);
    threads.clear();
    if (error_) return fail(*std::move(error_));
    if (!options_.sums) return {};
    for (size_t i = 0; i < pieces_.size(); ++i) {
      PlacedTensor& tensor = tensors_[pieces_[i].tensor];
      auto size = bytes_of(*tensor.source, pieces_[i].count);
      tensor.crc = pieces_[i].first == 0 ? crcs_[i] : combined_crc32(tensor.crc, crcs_[i], size);
    }
    return {};
  }

 private:
  void cut(size_t tensor) {
    const TensorSource& source = *tensors_[tensor].source;
    int64_t total = source.elements(), unit = elements_per_unit(source.dtype());
    int64_t step = std::max<int64_t>(kPieceBytes * 8 / bits_of(source.dtype()) / unit * unit, unit);
    for (int64_t first = 0; first < total; first += step) {
      pieces_.push_back({tensor, first, std::min(step, total - first)});
    }
  }

  void work(size_t thread_count, bool reports) {
    std::unique_ptr<std::byte[]> buffer;
    size_t buffer_size = 0;
    while (true) {
      size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= pieces_.size() || has_failed_.load(std::memory_order_relaxed)) return;
      size_t scratch =
          std::min(wanted_scratch(*tensors_[pieces_[i].tensor].source), options_.scratch_bytes / thread_count);
      if (scratch > buffer_size) {
        buffer = std::make_unique_for_overwrite<std::byte[]>(scratch);
        buffer_size = scratch;
      }
      if (Status status = write(i, std::span(buffer.get(), scratch)); !status) {
        keep_error(i, std::move(status.error().in(format("writing {}", quoted(tensors_[pieces_[i].tensor].name)))));
        return;
      }
      if (reports && options_.progress) options_.progress(done_.load(std::memory_order_relaxed));
    }
  }

  Status write(size_t index, std::span<std::byte> scratch) {
    const Piece& piece = pieces_[index];
    const PlacedTensor& tensor = tensors_[piece.tensor];
    uint64_t start = tensor.offset + bytes_of(*tensor.source, piece.first);
    uint64_t position = start;
    uint32_t crc = 0;
    ARGOSY_TRY_STATUS(tensor.source->stream_range(
        piece.first, piece.count,
        [&](std::span<const std::byte> bytes) -> Status {
          if (options_.sums) crc = crc32(crc, bytes);
          if (options_.observe) options_.observe(piece.tensor, bytes);
          position += bytes.size();
          return file_.write_at(position - bytes.size(), bytes);
        },
        scratch));
    ARGOSY_CHECK(position - start == bytes_of(*tensor.source, piece.count),
                 "a source streamed another number of bytes than it has: " + tensor.source->recipe());
    file_.begin_sync(start, position - start);
    crcs_[index] = crc;
    done_.fetch_add(position - start, std::memory_order_relaxed);
    return {};
  }

  void keep_error(size_t piece, Error error) {
    std::lock_guard lock(mutex_);
    has_failed_.store(true, std::memory_order_relaxed);
    if (error_ && piece > error_piece_) return;
    error_ = std::move(error);
    error_piece_ = piece;
  }

  std::span<PlacedTensor> tensors_;
  OutputFile& file_;
  const TensorWriteOptions& options_;
  std::vector<Piece> pieces_;  // in the order of tensors and elements
  std::vector<uint32_t> crcs_;
  std::atomic<size_t> next_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
  size_t error_piece_ = 0;
};

}  // namespace

Status write_tensors(std::span<PlacedTensor> tensors, OutputFile& file, const TensorWriteOptions& options) {
  return TensorWriter(tensors, file, options).run();
}

}  // namespace argosy
