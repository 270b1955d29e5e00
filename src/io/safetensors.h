#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "tensor/dtype.h"

namespace argosy {

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;                      // in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  // `__metadata__`, sorted by key
};

/// The header's text may have that many bytes; the format's own limit.
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// The length of the header's text, from the first 8 bytes of a file (fewer if the file is shorter). It lies inside the
/// file.
Result<uint64_t> safetensors_header_length(std::span<const std::byte> first_bytes, uint64_t file_size,
                                           std::string_view file_name);

/// Reads the header's text (what follows the first 8 bytes) of a file of `file_size` bytes. Refuses names that are
/// empty, not UTF-8 or twice there; unknown dtypes; shapes that are negative or overflow; sizes that contradict dtype
/// and shape; tensors that overlap, leave gaps or do not end with the file; metadata that is not text. Fields of a
/// tensor that are not known are ignored.
Result<SafetensorsHeader> parse_safetensors_header(std::string text, uint64_t file_size, std::string_view file_name);

/// Both steps on an open file. `file_name` is for messages.
Result<SafetensorsHeader> read_safetensors_header(const ReadFile& file, std::string_view file_name);

}  // namespace argosy
