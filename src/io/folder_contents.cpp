#include "io/folder_contents.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/system.h"
#include "io/file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

FileStamp stamp(const struct stat& info) {
  system::Time modified = system::modified(info);
  return {static_cast<uint64_t>(info.st_dev),
          static_cast<uint64_t>(info.st_ino),
          static_cast<uint64_t>(info.st_size),
          modified.seconds,
          modified.nanoseconds,
          S_ISDIR(info.st_mode)};
}

}  // namespace

bool FileStamp::is_same(const FileStamp& other) const {
  if (device != other.device || inode != other.inode || is_folder != other.is_folder) return false;
  return is_folder || (size == other.size && seconds == other.seconds && nanoseconds == other.nanoseconds);
}

Result<FileStamp> stamp_of(const fs::path& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return fail(system_error("examine", path, errno));
  return stamp(info);
}

Result<FolderContents> folder_contents(const fs::path& folder) {
  FolderContents contents;
  struct stat info;
  if (::stat(folder.c_str(), &info) != 0) return fail(system_error("examine", folder, errno));
  contents.folder = stamp(info);
  std::error_code failure;
  for (fs::recursive_directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    ARGOSY_TRY(FileStamp entry, stamp_of(it->path()));
    contents.entries.emplace(it->path().lexically_relative(folder).string(), entry);
  }
  if (failure) return fail(system_error("list", folder, failure.value()));
  return contents;
}

std::string first_change(const FolderContents& before, const FolderContents& now) {
  for (const auto& [name, entry] : now.entries) {
    auto found = before.entries.find(name);
    if (found == before.entries.end() || !found->second.is_same(entry)) return name;
  }
  return "";
}

}  // namespace argosy
