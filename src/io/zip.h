#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "tensor/source.h"

namespace argosy {

/// One stored entry of a zip file.
struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of its bytes in the file
  uint64_t size = 0;
  uint32_t crc = 0;
};

/// Reads the directory of a zip file whose entries are stored (not compressed); zip64 aware. Refuses compressed and
/// encrypted entries, duplicate names, names that leave the folder (absolute, "..", backslash, NUL), entries that
/// overlap each other or the directory, and directories that contradict local headers.
class ZipReader {
 public:
  static Result<ZipReader> open(const std::filesystem::path& path);
  static Result<ZipReader> open(std::shared_ptr<const ReadFile> file);
  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the order of the directory
  const ZipEntry* find(std::string_view name) const;
  const std::shared_ptr<const ReadFile>& file() const { return file_; }
  /// The bytes of an entry, checked against its CRC (a CRC of 0 in the directory, as some writers leave it, is not
  /// checked).
  Result<std::string> read(const ZipEntry& entry, uint64_t max_bytes = uint64_t{4} << 30) const;

 private:
  std::shared_ptr<const ReadFile> file_;
  std::vector<ZipEntry> entries_;
  std::vector<uint32_t> by_name_;  // indices sorted by name
};

/// Writes a zip file of stored entries, each starting at a multiple of 64 bytes, zip64 where needed, times fixed: same
/// entries, same bytes. Appends to `sink`; nothing is held but the directory.
class ZipWriter {
 public:
  explicit ZipWriter(ByteSink sink);
  Status add(std::string_view name, std::string_view bytes);
  /// Streams a tensor as an entry. Its size is known beforehand, its CRC follows in a data descriptor.
  Status add(std::string_view name, const TensorSource& source, size_t scratch_bytes);
  /// Writes the directory. Nothing may be added afterwards.
  Status finish();

 private:
  struct Written {
    std::string name;
    uint64_t header_offset, size;
    uint32_t crc;
    uint16_t flags;
  };
  Status write(std::string_view bytes);
  ByteSink sink_;
  uint64_t position_ = 0;
  std::vector<Written> written_;
};

}  // namespace argosy
