#include "io/temporary_name.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "io/file.h"

namespace argosy {
namespace {

constexpr std::string_view kSuffix = ".argosy-tmp";

/// Host names may hold anything; a short hash (FNV-1a) of it does for telling hosts apart.
std::string host_tag() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  uint32_t hash = 2166136261u;
  for (char c : std::string_view(name.data())) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return format("{:08x}", hash);
}

/// ".<name>.<host>-": names above 120 bytes are cut, so that the whole stays below the usual 255.
std::string prefix_on_this_host(const std::filesystem::path& destination) {
  return format(".{}.{}-", destination.filename().native().substr(0, 120), host_tag());
}

bool is_locked(const std::filesystem::path& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return true;
  bool is_free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return !is_free;
}

/// Removes what is in a folder, but for one entry.
void empty_folder(const std::filesystem::path& path, std::string_view kept = "") {
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(path, ignored), end; !ignored && it != end; it.increment(ignored)) {
    std::error_code failure;
    if (it->path().filename() != kept) std::filesystem::remove_all(it->path(), failure);
  }
}

}  // namespace

std::filesystem::path TemporaryName::numbered(int n) const { return folder / format("{}{}{}", prefix, n, kSuffix); }

Result<std::filesystem::path> output_destination(const std::filesystem::path& path) {
  std::filesystem::path destination = path;
  while (destination.has_parent_path() && !destination.has_filename()) destination = destination.parent_path();
  std::string name = destination.filename().native();
  if (name.empty() || name == "." || name == "..") {
    return fail(ErrorCode::kInvalidInput, format("{} does not name a new file or folder", quoted(path.native(), 1000)),
                "give the output a name of its own");
  }
  return destination;
}

TemporaryName temporary_name(const std::filesystem::path& destination) {
  std::filesystem::path folder = destination.parent_path();
  if (folder.empty()) folder = ".";
  return {folder, format("{}{}-", prefix_on_this_host(destination), ::getpid())};
}

bool is_temporary_of(const std::filesystem::path& path, const std::filesystem::path& destination) {
  std::string name = path.filename().native();
  return name.starts_with(prefix_on_this_host(destination)) && name.ends_with(kSuffix);
}

bool is_interrupted_replacement(const std::filesystem::path& path, const std::filesystem::path& destination) {
  std::error_code ignored;
  return is_temporary_of(path, destination) && std::filesystem::is_directory(path / kReplacedFiles, ignored);
}

void remove_stale_temporaries(const std::filesystem::path& destination) {
  std::string prefix = prefix_on_this_host(destination);
  std::filesystem::path folder = destination.parent_path();
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    std::string name = it->path().filename().native();
    if (!is_temporary_of(it->path(), destination)) continue;
    pid_t process = 0;
    const char* digits = name.data() + prefix.size();
    auto [after, error] = std::from_chars(digits, name.data() + name.size(), process);
    if (error != std::errc() || *after != '-' || process <= 0) continue;
    if (::kill(process, 0) == 0 || errno != ESRCH) continue;
    // The process may live in another container that shares this folder and the host's name; then it holds the lock.
    if (is_locked(it->path())) continue;
    std::error_code failure;
    bool is_missing =
        std::filesystem::symlink_status(destination, failure).type() == std::filesystem::file_type::not_found;
    if (is_missing && is_interrupted_replacement(it->path(), destination)) {
      empty_folder(it->path(), kReplacedFiles);
      empty_folder(it->path() / kReplacedFiles);
    } else {
      std::filesystem::remove_all(it->path(), failure);
    }
  }
}

Status sync_path(const std::filesystem::path& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(system_error("open", path, errno));
  int result = ::fsync(descriptor);
  int error_number = errno;
  ::close(descriptor);
  // Some file systems cannot sync folders, and say so with EINVAL.
  if (result != 0 && error_number != EINVAL) return fail(system_error("sync", path, error_number));
  return {};
}

}  // namespace argosy
