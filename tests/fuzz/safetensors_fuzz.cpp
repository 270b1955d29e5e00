// Any bytes as a safetensors file, and as an index of shards: refused or read, and what is read keeps its promises.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/text.h"
#include "io/checkpoint_index.h"
#include "io/names.h"
#include "io/safetensors.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  auto bytes = std::as_bytes(std::span(data, size));
  if (auto length = safetensors_header_length(bytes.first(std::min<size_t>(size, 8)), size, "fuzz")) {
    require(*length <= size - 8);
    std::string text(reinterpret_cast<const char*>(data) + 8, *length);
    if (auto header = parse_safetensors_header(text, size, "fuzz")) {
      uint64_t end = 8 + *length;
      for (const SafetensorsEntry& entry : header->tensors) {
        require(!entry.name.empty() && is_utf8(entry.name) && entry.offset == end);
        end += entry.bytes;
      }
      require(end == size);
    }
  }
  if (auto index = parse_checkpoint_index(std::string(reinterpret_cast<const char*>(data), size), "fuzz")) {
    for (const std::string& shard : index->shards) require(is_plain_relative_path(shard));
    for (const auto& [name, shard] : index->tensors) require(!name.empty() && shard < index->shards.size());
  }
  return 0;
}
