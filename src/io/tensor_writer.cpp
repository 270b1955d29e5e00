#include "io/tensor_writer.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "io/crc32.h"
#include "io/file.h"
#include "tensor/box.h"

namespace argosy {
namespace {

// A piece is what a thread takes at once; a block is read, summed up and written while it is in the processor's cache.
constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr size_t kBlockBytes = size_t{384} << 10;
constexpr size_t kLargeBlockBytes = size_t{16} << 20;

/// What is read together: one tensor, or all outputs of a group, in its order.
struct Item {
  std::vector<size_t> tensors;
  SourceGroupPtr group;           // null: of one tensor
  std::vector<FileRange> ranges;  // where it is read from
};

struct Piece {
  size_t item;
  int64_t first, count;  // elements; of a group, rows
};

uint64_t bytes_of(const TensorSource& source, int64_t elements) {
  return static_cast<uint64_t>(elements) * static_cast<uint64_t>(bits_of(source.dtype())) / 8;
}

/// Where a recipe reads, in the order of its inputs.
void add_ranges(const TensorSource& source, std::vector<FileRange>& ranges) {
  if (auto range = source.file_range()) {
    ranges.push_back(*std::move(range));
    return;
  }
  SourceGroupPtr group = source.group();
  for (const TensorSourcePtr& input : group ? group->inputs() : source.inputs()) add_ranges(*input, ranges);
}

/// Recipes that gather from afar read less often with larger blocks; what lies in one file does not care.
size_t wanted_scratch(const TensorSource& source) { return source.file_range() ? kBlockBytes : kLargeBlockBytes; }

class TensorWriter {
 public:
  TensorWriter(std::span<PlacedTensor> tensors, const TensorWriteOptions& options)
      : tensors_(tensors), options_(options) {
    gather();
    for (Item& item : items_) add_ranges(*tensors_[item.tensors[0]].source, item.ranges);
    auto is_of_first_file = [&](const PlacedTensor& tensor) { return tensor.file == tensors_[0].file; };
    if (!std::ranges::all_of(tensors_, is_of_first_file)) sort_by_reading();
    for (size_t i = 0; i < items_.size(); ++i) cut(i);
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
      const Item& item = items_[pieces_[i].item];
      for (size_t output = 0; output < item.tensors.size(); ++output) {
        PlacedTensor& tensor = tensors_[item.tensors[output]];
        uint64_t size = bytes_of_part(item, output, pieces_[i].count);
        tensor.crc = pieces_[i].first == 0 ? crcs_[i][output] : combined_crc32(tensor.crc, crcs_[i][output], size);
      }
    }
    return {};
  }

 private:
  /// Groups all of whose outputs are to be written become items of their own.
  void gather() {
    std::map<const SourceGroup*, std::vector<size_t>> groups;
    constexpr auto kMissing = std::numeric_limits<size_t>::max();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      SourceGroupPtr group = tensors_[i].source->group();
      if (group == nullptr) continue;
      std::vector<size_t>& outputs = groups.try_emplace(group.get(), group->size(), kMissing).first->second;
      size_t& output = outputs[tensors_[i].source->group_index()];
      if (output == kMissing) output = i;
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      SourceGroupPtr group = tensors_[i].source->group();
      const std::vector<size_t>* outputs = group ? &groups.at(group.get()) : nullptr;
      bool is_whole = outputs != nullptr && std::ranges::find(*outputs, kMissing) == outputs->end();
      if (is_whole && std::ranges::find(*outputs, i) != outputs->end()) {
        if (i == std::ranges::min(*outputs)) items_.push_back({*outputs, std::move(group), {}});
      } else {
        items_.push_back({{i}, nullptr, {}});
      }
    }
  }

  void sort_by_reading() {
    std::ranges::stable_sort(items_, {}, [](const Item& item) {
      return item.ranges.empty() ? std::pair(std::string(), uint64_t{0})
                                 : std::pair(item.ranges[0].path, item.ranges[0].offset);
    });
  }

  /// Tells the system to read what a piece is made of, while the processor is busy with an earlier one. Pieces are
  /// taken for parts of what the item reads, as long as the piece is of the item: nearly always so, and harmless if
  /// not.
  void begin_reading(size_t index) const {
    if (index >= pieces_.size()) return;
    const Piece& piece = pieces_[index];
    const Item& item = items_[piece.item];
    double total = 0;
    for (const FileRange& range : item.ranges) total += static_cast<double>(range.size);
    auto whole = static_cast<double>(item.group ? item.group->rows() : tensors_[item.tensors[0]].source->elements());
    double first = total * static_cast<double>(piece.first) / whole;
    double end = total * static_cast<double>(piece.first + piece.count) / whole;
    for (const FileRange& range : item.ranges) {
      auto size = static_cast<double>(range.size), from = std::clamp(first, 0.0, size), to = std::clamp(end, 0.0, size);
      if (from < to) {
        argosy::begin_reading(
            {range.path, range.offset + static_cast<uint64_t>(from), static_cast<uint64_t>(to - from)});
      }
      first -= size;
      end -= size;
    }
  }

  uint64_t bytes_of_part(const Item& item, size_t output, int64_t count) const {
    const TensorSource& source = *tensors_[item.tensors[output]].source;
    int64_t elements = item.group ? count * (source.elements() / std::max<int64_t>(item.group->rows(), 1)) : count;
    return bytes_of(source, elements);
  }

  void cut(size_t index) {
    const Item& item = items_[index];
    const TensorSource& source = *tensors_[item.tensors[0]].source;
    int64_t total = source.elements(), unit = elements_per_unit(source.dtype());
    int64_t step = kPieceBytes * 8 / bits_of(source.dtype()) / unit * unit;
    if (item.group) {
      total = item.group->rows();
      step = kPieceBytes / std::max<int64_t>(static_cast<int64_t>(bytes_of_part(item, 0, 1)), 1);
      unit = 1;
    }
    for (int64_t first = 0; first < total; first += std::max(step, unit)) {
      pieces_.push_back({index, first, std::min(std::max(step, unit), total - first)});
    }
  }

  void work(size_t thread_count, bool reports) {
    std::unique_ptr<std::byte[]> buffer;
    size_t buffer_size = 0;
    while (true) {
      size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= pieces_.size() || has_failed_.load(std::memory_order_relaxed)) return;
      const PlacedTensor& tensor = tensors_[items_[pieces_[i].item].tensors[0]];
      size_t scratch = std::min(wanted_scratch(*tensor.source), options_.scratch_bytes / thread_count);
      if (scratch > buffer_size) {
        buffer = std::make_unique_for_overwrite<std::byte[]>(scratch);
        buffer_size = scratch;
      }
      begin_reading(i + thread_count);
      if (Status status = write(i, std::span(buffer.get(), scratch)); !status) {
        keep_error(i, std::move(status.error().in(format("writing {}", quoted(tensor.name)))));
        return;
      }
      if (reports && options_.progress) options_.progress(done_.load(std::memory_order_relaxed));
    }
  }

  Status write(size_t index, std::span<std::byte> scratch) {
    const Piece& piece = pieces_[index];
    const Item& item = items_[piece.item];
    size_t outputs = item.tensors.size();
    std::vector<uint64_t> starts(outputs), positions(outputs);
    crcs_[index].resize(outputs);
    std::vector<ByteSink> sinks;
    for (size_t i = 0; i < outputs; ++i) {
      starts[i] = positions[i] = tensors_[item.tensors[i]].offset + bytes_of_part(item, i, piece.first);
      sinks.emplace_back([this, &item, i, &position = positions[i], &crc = crcs_[index][i]](auto bytes) -> Status {
        if (options_.sums) crc = crc32(crc, bytes);
        if (options_.observe) options_.observe(item.tensors[i], bytes);
        position += bytes.size();
        return tensors_[item.tensors[i]].file->write_at(position - bytes.size(), bytes);
      });
    }
    const TensorSource& source = *tensors_[item.tensors[0]].source;
    ARGOSY_TRY_STATUS(item.group ? item.group->stream_rows(piece.first, piece.count, sinks, scratch)
                                 : source.stream_range(piece.first, piece.count, sinks[0], scratch));
    for (size_t i = 0; i < outputs; ++i) {
      uint64_t written = positions[i] - starts[i];
      ARGOSY_CHECK(written == bytes_of_part(item, i, piece.count),
                   "a source streamed another number of bytes than it has: " + source.recipe());
      tensors_[item.tensors[i]].file->begin_sync(starts[i], written);
      done_.fetch_add(written, std::memory_order_relaxed);
    }
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
  const TensorWriteOptions& options_;
  std::vector<Item> items_;
  std::vector<Piece> pieces_;                // in the order of items and elements
  std::vector<std::vector<uint32_t>> crcs_;  // by piece and output
  std::atomic<size_t> next_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
  size_t error_piece_ = 0;
};

}  // namespace

Status write_tensors(std::span<PlacedTensor> tensors, const TensorWriteOptions& options) {
  return TensorWriter(tensors, options).run();
}

}  // namespace argosy
