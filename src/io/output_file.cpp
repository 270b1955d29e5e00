#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/system.h"
#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "io/temporary_name.h"

namespace argosy {
namespace {

constexpr size_t kCopyBlock = size_t{1} << 20;

tl::unexpected<Error> exists_already(const std::filesystem::path& path) {
  return fail(ErrorCode::kInvalidInput, format("{} exists already", quoted(path.native(), 1000)),
              "choose another name, remove it, or ask for it to be replaced");
}

}  // namespace

struct OutputFile::Impl {
  std::filesystem::path destination;
  std::filesystem::path temporary;
  Overwrite overwrite = Overwrite::kRefuse;
  int descriptor = -1;
  uint64_t size = 0;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (descriptor >= 0) ::close(descriptor);
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }

  Status write_at(uint64_t offset, std::span<const std::byte> bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
      ssize_t count = ::pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (count < 0) {
        if (errno == EINTR) continue;
        return fail(system_error("write", destination, errno));
      }
      done += static_cast<size_t>(count);
    }
    return {};
  }

  Status write(std::span<const std::byte> bytes) {
    ARGOSY_TRY_STATUS(write_at(size, bytes));
    size += bytes.size();
    return {};
  }

  /// link() never replaces, on any file system that has hard links; a rename is tried first since not all have.
  Status rename_without_replacing() {
    if (system::rename_to_new(temporary.c_str(), destination.c_str())) return {};
    if (errno == EEXIST) return exists_already(destination);
    if (!system::is_unsupported(errno)) return fail(system_error("create", destination, errno));
    if (::link(temporary.c_str(), destination.c_str()) != 0) {
      if (errno == EEXIST) return exists_already(destination);
      return fail(system_error("create", destination, errno));
    }
    ::unlink(temporary.c_str());
    return {};
  }
};

OutputFile::OutputFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::filesystem::path& path, Overwrite overwrite) {
  auto impl = std::make_unique<Impl>();
  ARGOSY_TRY(impl->destination, output_destination(path));
  impl->overwrite = overwrite;
  struct stat info;
  if (::lstat(impl->destination.c_str(), &info) == 0) {
    if (overwrite == Overwrite::kRefuse) return exists_already(impl->destination);
    if (S_ISDIR(info.st_mode)) {
      return fail(ErrorCode::kInvalidInput,
                  format("{} is a folder, not a file", quoted(impl->destination.native(), 1000)),
                  "choose another name for the output");
    }
  }
  remove_stale_temporaries(impl->destination);
  TemporaryName names = temporary_name(impl->destination);
  for (int n = 0; impl->descriptor < 0; ++n) {
    std::filesystem::path candidate = names.numbered(n);
    impl->descriptor = ::open(candidate.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (impl->descriptor >= 0) {
      impl->temporary = candidate;
    } else if (errno != EEXIST && errno != EINTR) {
      return fail(system_error("create", impl->destination, errno));
    }
  }
  // Tells other processes that this temporary is in use; where locks do not exist, the process id still does.
  ::flock(impl->descriptor, LOCK_EX | LOCK_NB);
  return OutputFile(std::move(impl));
}

Status OutputFile::write(std::span<const std::byte> bytes) { return impl_->write(bytes); }
Status OutputFile::write(std::string_view text) { return impl_->write(std::as_bytes(std::span(text))); }
Status OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  return impl_->write_at(offset, bytes);
}
void OutputFile::begin_sync(uint64_t offset, uint64_t size) const {
  system::begin_writing(impl_->descriptor, offset, size);
}
uint64_t OutputFile::size() const { return impl_->size; }
const std::filesystem::path& OutputFile::path() const { return impl_->temporary; }

ByteSink OutputFile::sink() {
  return [impl = impl_.get()](std::span<const std::byte> bytes) { return impl->write(bytes); };
}

Status OutputFile::copy_from(const FileRange& range) {
  ARGOSY_TRY(auto file, ReadFile::open(range.path));
  ARGOSY_TRY(ReadFile::Lease lease, file->lease());
  uint64_t done = 0;
  while (done < range.size) {
    size_t wanted = std::min<uint64_t>(range.size - done, uint64_t{1} << 30);
    ssize_t count =
        system::copy_between(lease.descriptor(), range.offset + done, impl_->descriptor, impl_->size, wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)) {
      return fail(system_error("write", impl_->destination, errno));
    }
    if (count <= 0) break;  // not possible between these two files; copied below, where a short file is reported too
    done += static_cast<uint64_t>(count);
    impl_->size += static_cast<uint64_t>(count);
  }
  if (done == range.size) return {};
  std::vector<std::byte> block(std::min<uint64_t>(kCopyBlock, range.size - done));
  while (done < range.size) {
    std::span<std::byte> part = std::span(block).first(std::min<uint64_t>(block.size(), range.size - done));
    ARGOSY_TRY_STATUS(file->read(lease, range.offset + done, part));
    ARGOSY_TRY_STATUS(impl_->write(part));
    done += part.size();
  }
  return {};
}

Status OutputFile::append(const TensorSource& source, size_t scratch_bytes) {
  if (auto range = source.file_range()) return copy_from(*range);
  return source.stream_to(sink(), scratch_bytes);
}

Status OutputFile::commit() {
  Impl& impl = *impl_;
  ARGOSY_CHECK(impl.descriptor >= 0, "commit of a file that is committed already");
  if (::fsync(impl.descriptor) != 0) return fail(system_error("sync", impl.destination, errno));
  if (impl.overwrite == Overwrite::kRefuse) {
    ARGOSY_TRY_STATUS(impl.rename_without_replacing());
  } else if (::rename(impl.temporary.c_str(), impl.destination.c_str()) != 0) {
    return fail(system_error("create", impl.destination, errno));
  }
  impl.temporary.clear();
  ::close(impl.descriptor);
  impl.descriptor = -1;
  return sync_path(impl.destination.has_parent_path() ? impl.destination.parent_path() : ".");
}

}  // namespace argosy
