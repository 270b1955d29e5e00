#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "tensor/blocks.h"
#include "tensor/source.h"

namespace argosy {

/// One tensor of a checkpoint, as its header states it.
struct CheckpointTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint32_t file = 0;    // index into Checkpoint::files()
  uint64_t offset = 0;  // in that file
  uint64_t bytes = 0;   // there
  /// Empty: its elements lie in row-major order. Else dim i of the tensor is dim order[i] of what lies in the file.
  std::vector<int> order = {};
  /// How it lies in a GGUF file, if not as elements of the dtype: it is decoded when it is read.
  BlockFormat format = BlockFormat::kNone;
};

/// Weights of a model: one safetensors file, or a folder with model.safetensors or with shards and their index; or the
/// same of files of torch.save (*.bin, io/torch_file.h); or a GGUF file (io/gguf_file.h). Opening reads headers only;
/// tensors are read when their sources are. No descriptor is kept open in between, so that hundreds of shards are no
/// problem.
///
/// In a folder, model.safetensors is taken if it exists (as transformers does), else the only *.safetensors.index.json,
/// else the only *.safetensors, else pytorch_model.bin, else pytorch_model.bin.index.json, else the only *.gguf. An
/// index must list exactly the tensors of its shards; shard names are plain relative paths inside the folder.
///
/// Symbolic links: the path given by the caller may be one, or go through some. A file that was found in a folder, or
/// that an index names, must lie in that folder once links are followed (io/inside_folder.h).
class Checkpoint {
 public:
  /// A .safetensors, .bin or .gguf file, an index (.safetensors.index.json, .bin.index.json) or a folder.
  static Result<Checkpoint> open(const std::filesystem::path& path);

  /// Takes the tensors of another checkpoint too, under names that begin with `prefix`. One that exists is an error.
  /// Flags of non_finite() begin anew.
  Status add(const Checkpoint& other, std::string_view prefix);

  /// Sorted by name.
  std::span<const CheckpointTensor> tensors() const { return tensors_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  const CheckpointTensor* find(std::string_view name) const;
  /// A source of that tensor's bytes; kNotFound, with the nearest names as a hint, if there is none.
  Result<TensorSourcePtr> tensor(std::string_view name) const;
  uint64_t total_bytes() const;
  /// Names of the tensors in which a NaN or an infinity has been read so far, sorted. What is never read (linked files,
  /// bytes that the kernel copies) is not among them.
  std::vector<std::string> non_finite() const;
  /// The `__metadata__` entries of the first file, sorted.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::shared_ptr<const ReadFile>> open_files_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::shared_ptr<std::atomic<bool>[]> has_non_finite_;  // for each tensor
};

}  // namespace argosy
