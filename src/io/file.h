#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// A regular file open for reading, shared by the sources that read from it; safe to read from several threads. Reads
/// with pread, so that what is read does not count as mapped memory.
class ReadFile {
 public:
  enum class Hold : uint8_t {
    kOpen,      // one descriptor as long as the object lives
    kOnDemand,  // a descriptor during each read only: for the many shards of a checkpoint
  };

  /// kNotFound if there is none; folders, pipes and devices are refused.
  static Result<std::shared_ptr<const ReadFile>> open(const std::filesystem::path& path, Hold hold = Hold::kOpen);
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `out` from `offset`; a file that has become shorter, or is no longer the one opened, is an error.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  Result<std::string> read_text(uint64_t offset, uint64_t size) const;

  /// A descriptor for several reads in a row. Not for more than the lifetime of the file object.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : descriptor_(other.descriptor_), is_owner_(std::exchange(other.is_owner_, false)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    int descriptor() const { return descriptor_; }

   private:
    friend class ReadFile;
    Lease(int descriptor, bool is_owner) : descriptor_(descriptor), is_owner_(is_owner) {}
    int descriptor_;
    bool is_owner_;
  };
  Result<Lease> lease() const;
  Status read(const Lease& lease, uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Identity {
    uint64_t device = 0, inode = 0;
    int64_t seconds = 0, nanoseconds = 0;  // of the last change of its contents
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct Opened;
  static Result<Opened> open_descriptor(const std::filesystem::path& path);
  ReadFile() = default;
  std::filesystem::path path_;
  int descriptor_ = -1;  // -1 with kOnDemand
  uint64_t size_ = 0;
  Identity identity_;
};

/// Asks the system to read a part of a file into its cache, without waiting for it. Whoever reads it hears of errors.
void begin_reading(const FileRange& range);

/// The whole of a text file; refuses files above `max_bytes`.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{512} << 20);

/// A tensor that lies in a file, row-major and packed. Must lie inside the file. Reads touch only what the box covers,
/// except that close small pieces are read together. `has_non_finite`, if given, becomes true once a NaN or an infinity
/// was read.
Result<TensorSourcePtr> file_slice(std::shared_ptr<const ReadFile> file, uint64_t offset, DType dtype,
                                   std::vector<int64_t> shape,
                                   std::shared_ptr<std::atomic<bool>> has_non_finite = nullptr);

/// The error for a failed system call on a path: what was tried, the path, what the system said, and what to do about
/// it (`error_number` is errno's value).
Error system_error(std::string_view tried, const std::filesystem::path& path, int error_number);

}  // namespace argosy
