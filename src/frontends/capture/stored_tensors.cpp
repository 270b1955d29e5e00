#include "frontends/capture/stored_tensors.h"

#include <algorithm>
#include <array>

namespace argosy {

Result<StoredTensors> StoredTensors::read(const ZipReader& zip, std::string_view entry_name) {
  StoredTensors stored;
  const ZipEntry* entry = zip.find(entry_name);
  if (entry == nullptr) return stored;
  std::array<std::byte, 8> length_bytes{};
  auto available = std::span(length_bytes).first(std::min<uint64_t>(entry->size, length_bytes.size()));
  ARGOSY_TRY_STATUS(zip.file()->read(entry->offset, available));
  ARGOSY_TRY(uint64_t length, safetensors_header_length(available, entry->size, entry_name));
  ARGOSY_TRY(std::string text, zip.file()->read_text(entry->offset + length_bytes.size(), length));
  ARGOSY_TRY(SafetensorsHeader header, parse_safetensors_header(std::move(text), entry->size, entry_name));
  for (SafetensorsEntry& tensor : header.tensors) {
    tensor.offset += entry->offset;
    std::string name = tensor.name;
    stored.tensors_.emplace(std::move(name), std::move(tensor));
  }
  return stored;
}

const SafetensorsEntry* StoredTensors::find(const std::string& name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace argosy
