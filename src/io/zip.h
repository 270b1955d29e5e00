#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/zip_records.h"
#include "tensor/source.h"

namespace argosy {

/// One stored entry of a zip file.
struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of its bytes in the file
  uint64_t size = 0;
  uint32_t crc = 0;
};

/// Fills a span from a position of a file, all of it or an error.
using ReadAt = std::function<Status(uint64_t offset, std::span<std::byte> out)>;

/// The entries of a zip file of `file_size` bytes, in the order of its directory; see ZipReader for what is refused.
/// `name` is that of the file, for messages.
Result<std::vector<ZipEntry>> read_zip_directory(const ReadAt& read_at, uint64_t file_size, std::string_view name);

/// Why a name cannot be that of an entry: empty, absolute, "." or ".." or nothing between separators, backslash, NUL,
/// not UTF-8. Empty if it can.
std::string_view problem_of_entry_name(std::string_view name);

/// Reads the directory of a zip file whose entries are stored (not compressed); zip64 aware. Refuses compressed and
/// encrypted entries, duplicate names, names that leave the folder (absolute, "..", backslash, NUL), entries that
/// overlap each other or the directory, directories that contradict local headers, and bytes after the end. Entries of
/// folders ("x/") are left out.
class ZipReader {
 public:
  static Result<ZipReader> open(const std::filesystem::path& path);
  static Result<ZipReader> open(std::shared_ptr<const ReadFile> file);
  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the order of the directory
  const ZipEntry* find(std::string_view name) const;
  const std::shared_ptr<const ReadFile>& file() const { return file_; }
  /// The bytes of an entry, checked against its CRC (a CRC of 0 in the directory, as some writers leave it, is not
  /// checked). Entries above `max_bytes` are refused; tensors are read with file_slice() at entry.offset instead.
  Result<std::string> read(const ZipEntry& entry, uint64_t max_bytes = uint64_t{512} << 20) const;

 private:
  std::shared_ptr<const ReadFile> file_;
  std::vector<ZipEntry> entries_;
  std::vector<uint32_t> by_name_;  // indices sorted by name
};

/// Writes a zip file of stored entries, each starting at a multiple of 64 bytes (padded as torch does, by an extra
/// field "FB" of the local header), zip64 where needed, times fixed: same entries, same bytes. Appends to `sink`, which
/// must be at the start of the file; nothing is held but the directory. Names that a reader would refuse are refused.
class ZipWriter {
 public:
  explicit ZipWriter(ByteSink sink);
  Status add(std::string_view name, std::string_view bytes);
  /// Streams a tensor as an entry. Its size is known beforehand, its CRC follows in a data descriptor.
  Status add(std::string_view name, const TensorSource& source, size_t scratch_bytes);
  /// Writes the directory. Nothing may be added afterwards.
  Status finish();

 private:
  Status write(std::string_view bytes);
  Status begin_entry(zip::Record record);
  ByteSink sink_;
  uint64_t position_ = 0;
  std::vector<zip::Record> records_;
  zip::NameCheck names_;
};

}  // namespace argosy
