#include "cache/capture_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <tuple>

#include "base/check.h"
#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "io/temporary_name.h"
#include "tensor/sha256.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBlock = size_t{1} << 20;
constexpr const char* kNameFile = "name.txt";
constexpr size_t kMaxName = 200;

struct KindNames {
  CacheKind kind;
  std::string_view folder, extension;
};
constexpr std::array<KindNames, 3> kKinds = {{{CacheKind::kCapture, "captures", ".capture"},
                                              {CacheKind::kWeightPlan, "plans", ".json"},
                                              {CacheKind::kCheck, "checks", ".json"}}};

const KindNames& names_of(CacheKind kind) { return kKinds[static_cast<size_t>(kind)]; }

bool is_hash(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Entries of one key, in no order. A folder that is not there has none.
std::vector<CacheEntry> entries_of(const fs::path& root, CacheKind kind, std::string_view key) {
  std::vector<CacheEntry> entries;
  const KindNames& names = names_of(kind);
  std::error_code failure;
  for (fs::directory_iterator it(root / names.folder / key, failure), end; !failure && it != end;
       it.increment(failure)) {
    const fs::path& path = it->path();
    std::string hash = path.stem().string();
    if (path.extension() != names.extension || !is_hash(hash)) continue;
    std::error_code gone;  // another process may prune meanwhile
    uint64_t bytes = it->file_size(gone);
    auto written = it->last_write_time(gone);
    if (!gone) entries.push_back({kind, std::string(key), hash, path, bytes, written});
  }
  // Of one age, the order of names decides, so that every process takes the same.
  std::ranges::sort(entries, [](const CacheEntry& a, const CacheEntry& b) {
    return std::tie(b.written, a.hash) < std::tie(a.written, b.hash);
  });
  return entries;
}

Status make_folders(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return fail(system_error("create", folder, failure.value()));
  return {};
}

}  // namespace

CacheLock::~CacheLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::string> hash_of_file(const fs::path& path) {
  ARGOSY_TRY(auto file, ReadFile::open(path));
  std::vector<std::byte> block(std::min<uint64_t>(kReadBlock, file->size()));
  Sha256 hash;
  for (uint64_t done = 0; done < file->size();) {
    auto part = std::span(block).first(std::min<uint64_t>(block.size(), file->size() - done));
    ARGOSY_TRY_STATUS(file->read(done, part));
    hash.add(part);
    done += part.size();
  }
  return hash.hex();
}

std::string cache_name(CacheKind kind, std::string_view key, std::string_view hash) {
  const KindNames& names = names_of(kind);
  return format("{}/{}/{}{}", names.folder, key, hash, names.extension);
}

std::optional<CacheEntry> parse_cache_name(std::string_view name) {
  for (const KindNames& names : kKinds) {
    if (!name.starts_with(names.folder) || !name.ends_with(names.extension)) continue;
    std::string_view rest =
        name.substr(names.folder.size(), name.size() - names.folder.size() - names.extension.size());
    if (rest.size() != 130 || rest[0] != '/' || rest[65] != '/') continue;
    std::string_view key = rest.substr(1, 64), hash = rest.substr(66);
    if (is_hash(key) && is_hash(hash)) return CacheEntry{names.kind, std::string(key), std::string(hash), {}, 0, {}};
  }
  return std::nullopt;
}

Result<std::optional<CacheEntry>> CaptureCache::find(CacheKind kind, std::string_view key,
                                                     std::vector<fs::path>* damaged) const {
  for (CacheEntry& entry : entries_of(root_, kind, key)) {
    // What cannot be read is no reason to fail: it can be made again.
    Result<bool> intact = is_intact(entry);
    if (intact && *intact) return std::move(entry);
    if (damaged != nullptr) damaged->push_back(entry.path);
  }
  return std::nullopt;
}

Result<std::vector<CacheEntry>> CaptureCache::list() const {
  std::vector<CacheEntry> entries;
  for (const KindNames& names : kKinds) {
    std::vector<std::string> keys;
    std::error_code failure;
    for (fs::directory_iterator it(root_ / names.folder, failure), end; !failure && it != end; it.increment(failure)) {
      std::string key = it->path().filename().string();
      if (is_hash(key)) keys.push_back(std::move(key));
    }
    if (failure && failure != std::errc::no_such_file_or_directory)
      return fail(system_error("list", root_ / names.folder, failure.value()));
    std::ranges::sort(keys);
    for (const std::string& key : keys) {
      for (CacheEntry& entry : entries_of(root_, names.kind, key)) entries.push_back(std::move(entry));
    }
  }
  return entries;
}

Result<bool> CaptureCache::is_intact(const CacheEntry& entry) const {
  ARGOSY_TRY(std::string hash, hash_of_file(entry.path));
  return hash == entry.hash;
}

Result<fs::path> CaptureCache::temporary(CacheKind kind, std::string_view key) const {
  fs::path folder = root_ / names_of(kind).folder / key;
  ARGOSY_TRY_STATUS(make_folders(folder));
  fs::path destination = folder / "new";
  remove_stale_temporaries(destination);
  return temporary_name(destination).numbered(0);
}

Result<CacheEntry> CaptureCache::add(CacheKind kind, std::string_view key, const fs::path& temporary) const {
  ARGOSY_CHECK(is_hash(key), "not a key of the cache");
  ARGOSY_TRY(std::string hash, hash_of_file(temporary));
  ARGOSY_TRY_STATUS(sync_path(temporary));
  CacheEntry entry{kind, std::string(key), hash, root_ / cache_name(kind, key, hash), 0, {}};
  ARGOSY_TRY_STATUS(make_folders(entry.path.parent_path()));
  std::error_code failure;
  fs::rename(temporary, entry.path, failure);
  if (failure) return fail(system_error("create", entry.path, failure.value()));
  entry.bytes = fs::file_size(entry.path, failure);
  entry.written = fs::last_write_time(entry.path, failure);
  return entry;
}

Status CaptureCache::remove(const CacheEntry& entry) const {
  std::error_code failure;
  fs::remove(entry.path, failure);
  if (failure) return fail(system_error("remove", entry.path, failure.value()));
  if (entries_of(root_, entry.kind, entry.key).empty()) fs::remove(entry.path.parent_path() / kNameFile, failure);
  fs::remove(entry.path.parent_path(), failure);  // stays as long as something is in it
  return {};
}

void CaptureCache::set_name(CacheKind kind, std::string_view key, std::string_view name) const {
  const fs::path path = root_ / names_of(kind).folder / key / kNameFile;
  std::error_code ignored;
  if (name.empty() || name.size() > kMaxName || fs::exists(path, ignored)) return;
  auto file = OutputFile::create(path, Overwrite::kReplace);
  if (file && file->write(format("{}\n", name))) (void)file->commit();
}

std::string CaptureCache::name_of(const CacheEntry& entry) const {
  auto text = read_text_file(entry.path.parent_path() / kNameFile, kMaxName + 1);
  return text ? text->substr(0, text->find('\n')) : "";
}

std::string model_name(const fs::path& model) {
  constexpr std::string_view kRepository = "models--";
  std::error_code ignored;
  fs::path path = fs::absolute(model, ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  // The Hub's cache: models--ORG--NAME/snapshots/COMMIT.
  for (const fs::path& part : path) {
    std::string name = part.string();
    if (!name.starts_with(kRepository)) continue;
    name.erase(0, kRepository.size());
    if (size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    return name;
  }
  return path.filename().string();
}

bool is_name_file(const fs::path& path) { return path.filename() == kNameFile; }

Result<CacheLock> CaptureCache::lock(CacheKind kind, std::string_view key, const std::function<void()>& on_wait) const {
  fs::path folder = root_ / "locks";
  ARGOSY_TRY_STATUS(make_folders(folder));
  fs::path path = folder / format("{}-{}", names_of(kind).folder, key);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return fail(system_error("create", path, errno));
  CacheLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return lock;
  if (on_wait) on_wait();
  while (::flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
  }
  return lock;
}

}  // namespace argosy
