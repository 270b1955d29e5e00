#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/system.h"
#include "base/text.h"

namespace argosy {

Error system_error(std::string_view tried, const std::filesystem::path& path, int error_number) {
  ErrorCode code = ErrorCode::kIo;
  std::string hint;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = ErrorCode::kNotFound;
      hint = "check the path";
      break;
    case EACCES:
    case EPERM: hint = "check the permissions of the file and of the folders above it"; break;
    case EROFS: hint = "the file system is read-only; choose another place for the output"; break;
    case ENOSPC:
    case EDQUOT: hint = "the disk or the quota is full; free some space or choose another place for the output"; break;
    case EFBIG: hint = "the file system or a limit (ulimit -f) does not allow files of this size"; break;
    case EMFILE:
    case ENFILE: hint = "too many files are open; raise the limit (ulimit -n)"; break;
    case ELOOP: hint = "a symbolic link points at itself; repair or remove it"; break;
    case ENAMETOOLONG: hint = "choose a shorter name"; break;
    case EIO: hint = "the disk reports a defect; copy the file from elsewhere"; break;
    default: break;
  }
  return Error(
      code,
      format("cannot {} {}: {}", tried, quoted(path.native(), 1000), std::system_category().message(error_number)),
      std::move(hint));
}

struct ReadFile::Opened {
  int descriptor;
  uint64_t size;
  Identity identity;
};

Result<ReadFile::Opened> ReadFile::open_descriptor(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(system_error("open", path, errno));
  struct stat info;
  if (::fstat(descriptor, &info) != 0) {
    int error_number = errno;
    ::close(descriptor);
    return fail(system_error("examine", path, error_number));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return fail(ErrorCode::kInvalidInput,
                format("{} is {}, not a file", quoted(path.native(), 1000),
                       S_ISDIR(info.st_mode) ? "a folder" : "a pipe or a device"),
                "give the path of a regular file");
  }
  system::Time modified = system::modified(info);
  return Opened{descriptor, static_cast<uint64_t>(info.st_size),
                Identity{static_cast<uint64_t>(info.st_dev), info.st_ino, modified.seconds, modified.nanoseconds}};
}

Result<std::shared_ptr<const ReadFile>> ReadFile::open(const std::filesystem::path& path, Hold hold) {
  ARGOSY_TRY(Opened opened, open_descriptor(path));
  std::shared_ptr<ReadFile> file(new ReadFile());
  file->path_ = path;
  file->size_ = opened.size;
  file->identity_ = opened.identity;
  if (hold == Hold::kOpen) {
    file->descriptor_ = opened.descriptor;
  } else {
    ::close(opened.descriptor);
  }
  return file;
}

ReadFile::~ReadFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ReadFile::Lease::~Lease() {
  if (is_owner_) ::close(descriptor_);
}

Result<ReadFile::Lease> ReadFile::lease() const {
  if (descriptor_ >= 0) return Lease(descriptor_, false);
  ARGOSY_TRY(Opened opened, open_descriptor(path_));
  Lease lease(opened.descriptor, true);
  if (opened.identity != identity_ || opened.size != size_) {
    return fail(ErrorCode::kIo, format("{} was changed while it was in use", quoted(path_.native(), 1000)),
                "wait until nothing writes to it, and run again");
  }
  return lease;
}

Status ReadFile::read(uint64_t offset, std::span<std::byte> out) const {
  ARGOSY_TRY(Lease held, lease());
  return read(held, offset, out);
}

Status ReadFile::read(const Lease& lease, uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t count =
        ::pread(lease.descriptor(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0) {
      if (errno == EINTR) continue;
      return fail(system_error("read", path_, errno));
    }
    if (count == 0) {
      return fail(ErrorCode::kIo,
                  format("{} ends at byte {}, but bytes {} to {} are needed", quoted(path_.native(), 1000),
                         offset + done, offset, offset + out.size()),
                  "the file became shorter while it was read; check that nothing else writes to it");
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

Result<std::string> ReadFile::read_text(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset) {
    return fail(ErrorCode::kCorruptFile, format("{} has {} bytes, but bytes {} and the next {} are needed",
                                                quoted(path_.native(), 1000), size_, offset, size));
  }
  std::string text(size, '\0');
  ARGOSY_TRY_STATUS(read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

void begin_reading(const FileRange& range) {
  int descriptor = ::open(range.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  system::begin_reading(descriptor, range.offset, range.size);
  ::close(descriptor);
}

Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t max_bytes) {
  ARGOSY_TRY(auto file, ReadFile::open(path));
  if (file->size() > max_bytes) {
    return fail(ErrorCode::kInvalidInput,
                format("{} has {}, more than the {} that are read", quoted(path.native(), 1000),
                       format_bytes(file->size()), format_bytes(max_bytes)));
  }
  return file->read_text(0, file->size());
}

}  // namespace argosy
