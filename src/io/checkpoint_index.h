#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace argosy {

/// What an index of shards says. `shards` are plain relative names, sorted; `tensors` are (name, index into shards),
/// sorted by name and unique.
struct CheckpointIndex {
  std::vector<std::string> shards;
  std::vector<std::pair<std::string, uint32_t>> tensors;
};

/// Whether a file is one of torch.save, by its name.
bool is_torch_file(const std::filesystem::path& path);
/// Whether it is a GGUF file.
bool is_gguf_file(const std::filesystem::path& path);

/// Reads the text of an index file. `name` is that of the file, for messages.
Result<CheckpointIndex> parse_checkpoint_index(std::string text, std::string_view name);

/// The file of a checkpoint folder that says what it holds: model.safetensors, an index, or the only safetensors file;
/// without any of these, pytorch_model.bin or its index, or the only GGUF file.
Result<std::filesystem::path> find_checkpoint_in(const std::filesystem::path& folder);

}  // namespace argosy
