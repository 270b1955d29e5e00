#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// A file open for reading, shared by the sources that read from it; safe to read from several threads. Reads with
/// pread, so that what is read does not count as mapped memory.
class ReadFile {
 public:
  static Result<std::shared_ptr<const ReadFile>> open(const std::filesystem::path& path);
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_; }
  /// Fills `out` from `offset`; a file that has become shorter is an error.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  Result<std::string> read_text(uint64_t offset, uint64_t size) const;

 private:
  ReadFile(std::filesystem::path path, int descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  std::filesystem::path path_;
  int descriptor_;
  uint64_t size_;
};

/// The whole of a text file; refuses files above `max_bytes`.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 30);

/// A tensor that lies in a file, row-major and packed. Must lie inside the file.
Result<TensorSourcePtr> file_slice(std::shared_ptr<const ReadFile> file, uint64_t offset, DType dtype,
                                   std::vector<int64_t> shape);

}  // namespace argosy
