#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "io/names.h"
#include "registry/registry_source.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{1} << 18;

struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  Descriptor(Descriptor&& other) noexcept : value(std::exchange(other.value, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  int value;
};

struct OpenFile {
  Descriptor descriptor;
  uint64_t bytes = 0;
};

class FolderSource : public RegistrySource {
 public:
  explicit FolderSource(const fs::path& folder) : folder_(folder), location_(folder.string()) {}

  const std::string& location() const override { return location_; }

  Result<std::optional<std::string>> read(const std::string& name, uint64_t max_bytes) const override {
    ARGOSY_TRY(std::optional<OpenFile> file, open(name));
    if (!file) return std::nullopt;
    if (file->bytes > max_bytes) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} has {} bytes, at most {} are read", name, file->bytes, max_bytes));
    }
    std::string text(file->bytes, '\0');
    ARGOSY_TRY_STATUS(fill(*file, name, 0, std::as_writable_bytes(std::span(text))));
    return text;
  }

  Status fetch(const std::string& name, uint64_t bytes, const Sink& sink) const override {
    ARGOSY_TRY(std::optional<OpenFile> file, open(name));
    if (!file) return fail(ErrorCode::kNotFound, format("{} is not there, though its index names it", name));
    if (file->bytes != bytes) {
      return fail(ErrorCode::kCorruptFile, format("{} has {} bytes, by its index it has {}", name, file->bytes, bytes));
    }
    std::vector<std::byte> block(std::min<uint64_t>(kBlock, bytes));
    for (uint64_t done = 0; done < bytes;) {
      auto part = std::span(block).first(std::min<uint64_t>(block.size(), bytes - done));
      ARGOSY_TRY_STATUS(fill(*file, name, done, part));
      ARGOSY_TRY_STATUS(sink(part));
      done += part.size();
    }
    return {};
  }

 private:
  /// Opened folder by folder, so that no part of the name is a link.
  Result<std::optional<OpenFile>> open(const std::string& name) const {
    if (!is_plain_relative_path(name))
      return fail(ErrorCode::kInvalidInput, format("{} is no name of a registry's file", quoted(name)));
    Descriptor at(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (at.value < 0) return fail(system_error("open", folder_, errno));
    std::string_view rest = name;
    while (true) {
      const size_t slash = rest.find('/');
      const bool is_last = slash == std::string_view::npos;
      const std::string part(rest.substr(0, slash));
      // A pipe would not answer; with O_NONBLOCK it is opened, and refused below.
      Descriptor next(
          ::openat(at.value, part.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (is_last ? O_NONBLOCK : O_DIRECTORY)));
      if (next.value < 0 && errno == ENOENT) return std::nullopt;
      if (next.value < 0 && (errno == ELOOP || errno == ENOTDIR))
        return fail(ErrorCode::kCorruptFile, format("{} in {} is a link, or no folder", part, location_));
      if (next.value < 0) return fail(system_error("open", folder_ / name, errno));
      at = std::move(next);
      if (is_last) break;
      rest.remove_prefix(slash + 1);
    }
    struct stat about{};
    if (::fstat(at.value, &about) != 0) return fail(system_error("read", folder_ / name, errno));
    if (!S_ISREG(about.st_mode))
      return fail(ErrorCode::kCorruptFile, format("{} in {} is no regular file", name, location_));
    return OpenFile{std::move(at), static_cast<uint64_t>(about.st_size)};
  }

  Status fill(const OpenFile& file, const std::string& name, uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t count = ::pread(file.descriptor.value, out.data(), out.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return fail(system_error("read", folder_ / name, errno));
      if (count == 0) return fail(ErrorCode::kCorruptFile, format("{} became shorter while it was read", name));
      out = out.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
    return {};
  }

  fs::path folder_;
  std::string location_;
};

}  // namespace

std::unique_ptr<RegistrySource> folder_source(const fs::path& folder) { return std::make_unique<FolderSource>(folder); }

Result<std::unique_ptr<RegistrySource>> open_registry_source(const std::string& location) {
  const size_t colon = location.find("://");
  if (colon != std::string::npos) return http_source(location);
  std::error_code ignored;
  if (fs::is_directory(location, ignored)) return folder_source(location);
  return fail(ErrorCode::kNotFound, format("the registry {} is no folder", quoted(location, 1000)),
              "give a folder, or http://HOST[:PORT][/PATH]");
}

}  // namespace argosy
