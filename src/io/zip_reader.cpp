#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "io/crc32.h"
#include "io/zip.h"

namespace argosy {

Result<ZipReader> ZipReader::open(const std::filesystem::path& path) {
  ARGOSY_TRY(auto file, ReadFile::open(path));
  return open(std::move(file));
}

Result<ZipReader> ZipReader::open(std::shared_ptr<const ReadFile> file) {
  ZipReader reader;
  ReadAt read_at = [&](uint64_t offset, std::span<std::byte> out) { return file->read(offset, out); };
  std::string name = file->path().filename().native();
  ARGOSY_TRY(reader.entries_, read_zip_directory(read_at, file->size(), name));
  reader.by_name_.resize(reader.entries_.size());
  std::iota(reader.by_name_.begin(), reader.by_name_.end(), 0u);
  const auto& entries = reader.entries_;
  std::sort(reader.by_name_.begin(), reader.by_name_.end(),
            [&](uint32_t a, uint32_t b) { return entries[a].name < entries[b].name; });
  for (size_t i = 1; i < reader.by_name_.size(); ++i) {
    const std::string& entry = entries[reader.by_name_[i]].name;
    if (entries[reader.by_name_[i - 1]].name == entry) {
      return fail(ErrorCode::kCorruptFile, format("{} has two entries named {}", name, quoted(entry)),
                  "the file was made by a faulty tool; write it again");
    }
  }
  reader.file_ = std::move(file);
  return reader;
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  auto it = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                             [&](uint32_t index, std::string_view key) { return entries_[index].name < key; });
  return it != by_name_.end() && entries_[*it].name == name ? &entries_[*it] : nullptr;
}

Result<std::string> ZipReader::read(const ZipEntry& entry, uint64_t max_bytes) const {
  std::string archive = file_->path().filename().native();
  if (entry.size > max_bytes) {
    return fail(ErrorCode::kInvalidInput,
                format("entry {} of {} has {}, more than the {} that are read at once", quoted(entry.name), archive,
                       format_bytes(entry.size), format_bytes(max_bytes)));
  }
  ARGOSY_TRY(std::string bytes, file_->read_text(entry.offset, entry.size));
  uint32_t crc = crc32(0, std::as_bytes(std::span(bytes)));
  if (entry.crc != 0 && crc != entry.crc) {
    return fail(ErrorCode::kCorruptFile,
                format("entry {} of {} is damaged: its checksum is {:08x}, but {:08x} is recorded", quoted(entry.name),
                       archive, crc, entry.crc),
                "get or write the file again");
  }
  return bytes;
}

}  // namespace argosy
