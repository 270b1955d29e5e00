#include "io/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "io/checkpoint_index.h"
#include "io/gguf_file.h"
#include "io/inside_folder.h"
#include "io/safetensors.h"
#include "io/torch_file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

// Below this a thread costs more than it saves.
constexpr size_t kShardsPerThread = 8;
constexpr size_t kMaxThreads = 2;

struct Shard {
  std::shared_ptr<const ReadFile> file;
  std::vector<CheckpointTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

Result<Shard> open_shard(const fs::path& path) {
  Shard shard;
  ARGOSY_TRY(shard.file, ReadFile::open(path, ReadFile::Hold::kOnDemand));
  std::string shown = quoted(path.native(), 1000);
  if (is_torch_file(path)) {
    ARGOSY_TRY(std::vector<TorchFileEntry> entries, read_torch_file(shard.file, shown));
    shard.tensors.reserve(entries.size());
    for (TorchFileEntry& entry : entries) {
      shard.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape), 0, entry.offset, entry.bytes,
                               std::move(entry.order)});
    }
    return shard;
  }
  if (is_gguf_file(path)) {
    ARGOSY_TRY(std::vector<GgufEntry> entries, read_gguf_file(*shard.file, shown));
    shard.tensors.reserve(entries.size());
    for (GgufEntry& entry : entries) {
      shard.tensors.push_back(
          {std::move(entry.name), entry.dtype, std::move(entry.shape), 0, entry.offset, entry.bytes, {}, entry.format});
    }
    return shard;
  }
  ARGOSY_TRY(SafetensorsHeader header, read_safetensors_header(*shard.file, shown));
  shard.tensors.reserve(header.tensors.size());
  for (SafetensorsEntry& entry : header.tensors) {
    shard.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape), 0, entry.offset, entry.bytes});
  }
  shard.metadata = std::move(header.metadata);
  return shard;
}

/// All headers, in the order of `paths`; the first error in that order if there are any.
Result<std::vector<Shard>> open_shards(const std::vector<fs::path>& paths) {
  std::vector<Result<Shard>> opened(paths.size(), Shard());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < paths.size();) opened[i] = open_shard(paths[i]);
  };
  std::vector<std::jthread> threads;
  while (threads.size() + 1 < std::min(kMaxThreads, paths.size() / kShardsPerThread)) threads.emplace_back(work);
  work();
  threads.clear();
  std::vector<Shard> shards;
  shards.reserve(paths.size());
  for (Result<Shard>& one : opened) {
    ARGOSY_TRY(Shard shard, std::move(one));
    shards.push_back(std::move(shard));
  }
  return shards;
}

/// The index must list exactly what is in the shards. Both are sorted by name.
Status check_against_index(const std::vector<CheckpointTensor>& tensors, const CheckpointIndex& index,
                           std::string_view index_name) {
  constexpr const char* kHint = "index and shards do not belong together; get all files of the model again";
  size_t position = 0;
  const CheckpointTensor* previous = nullptr;
  for (const CheckpointTensor& tensor : tensors) {
    if (previous != nullptr && previous->name == tensor.name) {
      return fail(ErrorCode::kCorruptFile,
                  format("tensor {} is in two shards, {} and {}", quoted(tensor.name),
                         quoted(index.shards[previous->file]), quoted(index.shards[tensor.file])),
                  kHint);
    }
    previous = &tensor;
    // What the index lists before this name, no shard has.
    bool is_listed = position < index.tensors.size() && index.tensors[position].first <= tensor.name;
    if (is_listed && index.tensors[position].first != tensor.name) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} places tensor {} in {}, which does not hold it", index_name,
                         quoted(index.tensors[position].first), quoted(index.shards[index.tensors[position].second])),
                  kHint);
    }
    if (!is_listed) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} does not list tensor {}, which {} holds", index_name, quoted(tensor.name),
                         quoted(index.shards[tensor.file])),
                  kHint);
    }
    uint32_t expected = index.tensors[position].second;
    if (expected != tensor.file) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} places tensor {} in {}, but {} holds it", index_name, quoted(tensor.name),
                         quoted(index.shards[expected]), quoted(index.shards[tensor.file])),
                  kHint);
    }
    ++position;
  }
  if (position < index.tensors.size()) {
    return fail(ErrorCode::kCorruptFile,
                format("{} places tensor {} in {}, which does not hold it", index_name,
                       quoted(index.tensors[position].first), quoted(index.shards[index.tensors[position].second])),
                kHint);
  }
  return {};
}

Status check_all_exist(const CheckpointIndex& index, const fs::path& folder) {
  std::vector<std::string> missing;
  for (const std::string& shard : index.shards) {
    std::error_code failure;
    if (!fs::exists(folder / shard, failure)) missing.push_back(quoted(shard));
  }
  if (missing.empty()) return {};
  size_t count = missing.size();
  if (count > 10) {
    missing.resize(10);
    missing.push_back(format("and {} more", count - 10));
  }
  return fail(ErrorCode::kNotFound,
              format("{} of {} shards are missing in {}: {}", count, index.shards.size(), quoted(folder.native(), 1000),
                     join(missing, ", ")),
              "complete the download of the model");
}

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// How much of two names agrees at both ends: finds a missing prefix as well as a misspelt part.
size_t likeness(std::string_view a, std::string_view b) {
  size_t front = common_prefix(a, b);
  a.remove_prefix(front);
  b.remove_prefix(front);
  auto back = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  return front + static_cast<size_t>(back);
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& path) {
  fs::path main_file = path;
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    ARGOSY_TRY(main_file, find_checkpoint_in(path));
    ARGOSY_TRY_STATUS(check_inside_folder(main_file, path));
  }
  Checkpoint checkpoint;
  CheckpointIndex index;
  bool has_index = main_file.extension() == ".json";
  std::string shown = quoted(main_file.native(), 1000);
  if (has_index) {
    ARGOSY_TRY(std::string text, read_text_file(main_file, kMaxSafetensorsHeader));
    ARGOSY_TRY(index, parse_checkpoint_index(std::move(text), shown));
    // Inside the folder as the user sees it: in the Hub's cache the index itself is a link into blobs.
    fs::path folder = main_file.parent_path();
    if (folder.empty()) folder = ".";
    for (const std::string& shard : index.shards) {
      checkpoint.files_.push_back(folder / shard);
      ARGOSY_TRY_STATUS(check_inside_folder(checkpoint.files_.back(), folder));
    }
    ARGOSY_TRY_STATUS(check_all_exist(index, folder));
  } else {
    checkpoint.files_.push_back(main_file);
  }
  ARGOSY_TRY(std::vector<Shard> shards, open_shards(checkpoint.files_));
  size_t count = 0;
  for (const Shard& shard : shards) count += shard.tensors.size();
  checkpoint.tensors_.reserve(count);
  for (uint32_t i = 0; i < shards.size(); ++i) {
    checkpoint.open_files_.push_back(shards[i].file);
    for (CheckpointTensor& tensor : shards[i].tensors) {
      tensor.file = i;
      checkpoint.tensors_.push_back(std::move(tensor));
    }
    shards[i].tensors = {};
  }
  checkpoint.metadata_ = std::move(shards[0].metadata);
  // The file breaks ties, so that which duplicate is reported does not depend on the sort.
  std::sort(checkpoint.tensors_.begin(), checkpoint.tensors_.end(),
            [](const CheckpointTensor& a, const CheckpointTensor& b) {
              int order = a.name.compare(b.name);
              return order != 0 ? order < 0 : a.file < b.file;
            });
  if (has_index) ARGOSY_TRY_STATUS(check_against_index(checkpoint.tensors_, index, shown));
  checkpoint.has_non_finite_ = std::make_unique<std::atomic<bool>[]>(checkpoint.tensors_.size());
  return checkpoint;
}

Status Checkpoint::add(const Checkpoint& other, std::string_view prefix) {
  for (const CheckpointTensor& tensor : other.tensors_) {
    std::string name = format("{}{}", prefix, tensor.name);
    if (find(name) != nullptr) {
      return fail(ErrorCode::kInvalidInput, format("two checkpoints have a tensor {}", quoted(name)),
                  "rename it in one of them");
    }
  }
  auto file = static_cast<uint32_t>(files_.size());
  for (const CheckpointTensor& tensor : other.tensors_) {
    CheckpointTensor& added = tensors_.emplace_back(tensor);
    added.name.insert(0, prefix);
    added.file += file;
  }
  files_.insert(files_.end(), other.files_.begin(), other.files_.end());
  open_files_.insert(open_files_.end(), other.open_files_.begin(), other.open_files_.end());
  std::ranges::sort(tensors_, {}, &CheckpointTensor::name);
  has_non_finite_ = std::make_unique<std::atomic<bool>[]>(tensors_.size());
  return {};
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                             [](const CheckpointTensor& tensor, std::string_view key) { return tensor.name < key; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

Result<TensorSourcePtr> Checkpoint::tensor(std::string_view name) const {
  if (const CheckpointTensor* found = find(name)) {
    std::shared_ptr<std::atomic<bool>> flag(has_non_finite_, &has_non_finite_[found - tensors_.data()]);
    const std::shared_ptr<const ReadFile>& file = open_files_[found->file];
    if (found->format != BlockFormat::kNone) {
      BlockLayout layout = layout_of(found->format);
      std::vector<int64_t> in_file = found->shape;
      in_file.back() = in_file.back() / layout.values * layout.bytes;
      ARGOSY_TRY(TensorSourcePtr slice, file_slice(file, found->offset, DType::kU8, std::move(in_file)));
      return blocks_decoded(slice, found->format);
    }
    if (found->order.empty()) return file_slice(file, found->offset, found->dtype, found->shape, std::move(flag));
    std::vector<int64_t> in_file(found->shape.size());
    for (size_t i = 0; i < in_file.size(); ++i) in_file[static_cast<size_t>(found->order[i])] = found->shape[i];
    ARGOSY_TRY(TensorSourcePtr slice,
               file_slice(file, found->offset, found->dtype, std::move(in_file), std::move(flag)));
    return transposed(std::move(slice), found->order);
  }
  std::vector<std::pair<size_t, size_t>> nearest;  // likeness and index, best first
  nearest.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    nearest.emplace_back(likeness(name, tensors_[i].name), i);
  }
  size_t shown = std::min<size_t>(3, nearest.size());
  std::partial_sort(nearest.begin(), nearest.begin() + static_cast<ptrdiff_t>(shown), nearest.end(),
                    [](auto a, auto b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::vector<std::string> names;
  names.reserve(shown);
  for (size_t i = 0; i < shown; ++i) names.push_back(quoted(tensors_[nearest[i].second].name));
  return fail(ErrorCode::kNotFound, format("the checkpoint has no tensor {}", quoted(name)),
              names.empty() ? "it has no tensors at all" : "the nearest names are " + join(names, ", "));
}

std::vector<std::string> Checkpoint::non_finite() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (has_non_finite_[static_cast<ptrdiff_t>(i)].load(std::memory_order_relaxed)) names.push_back(tensors_[i].name);
  }
  return names;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const CheckpointTensor& tensor : tensors_) total += tensor.bytes;
  return total;
}

}  // namespace argosy
