#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy {

enum class CacheKind : uint8_t { kCapture, kWeightPlan, kCheck };

/// One file of the cache: ROOT/captures/KEY/HASH.capture, ROOT/plans/KEY/HASH.json or ROOT/checks/KEY/HASH.json. HASH
/// is the SHA-256 of the file, so that it can be copied to another machine as it is and verified anywhere.
struct CacheEntry {
  CacheKind kind = CacheKind::kCapture;
  std::string key;   // what was asked for: 64 hexadecimal digits
  std::string hash;  // of its bytes
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::filesystem::file_time_type written;
};

/// Held while an entry is made, so that other processes wait for it. The system gives it back when the process ends, in
/// whatever way: there are no stale locks.
class CacheLock {
 public:
  CacheLock() = default;
  explicit CacheLock(int descriptor) : descriptor_(descriptor) {}
  CacheLock(CacheLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  CacheLock& operator=(CacheLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~CacheLock();

 private:
  int descriptor_ = -1;
};

/// Captures, weight plans and passed checks by what they were made from. Any number of processes may use one folder:
/// entries appear by rename, whole, and are never changed.
class CaptureCache {
 public:
  explicit CaptureCache(std::filesystem::path root) : root_(std::move(root)) {}
  const std::filesystem::path& root() const { return root_; }

  /// The newest entry of that key whose bytes have their hash. Damaged ones are passed over; `damaged` (may be null)
  /// gets their paths.
  Result<std::optional<CacheEntry>> find(CacheKind kind, std::string_view key,
                                         std::vector<std::filesystem::path>* damaged = nullptr) const;
  /// Every entry, sorted by kind and key, newest first; their bytes are not looked at.
  Result<std::vector<CacheEntry>> list() const;
  /// Whether an entry's bytes have its hash.
  Result<bool> is_intact(const CacheEntry& entry) const;

  /// A name for a file in the making, in the cache's own folder (so that add() can rename it); those of processes that
  /// are gone are removed.
  Result<std::filesystem::path> temporary(CacheKind kind, std::string_view key) const;
  /// Takes a finished file from its temporary name into the cache.
  Result<CacheEntry> add(CacheKind kind, std::string_view key, const std::filesystem::path& temporary) const;
  /// With the last entry of a key its name goes, too.
  Status remove(const CacheEntry& entry) const;

  /// What users call the model that the key was first made for (see model_name()): a file beside the entries, which
  /// other models share. A name that is there stays. Nothing fails if it cannot be written.
  void set_name(CacheKind kind, std::string_view key, std::string_view name) const;
  /// Empty if it is not known.
  std::string name_of(const CacheEntry& entry) const;

  /// Waits until no other process makes that entry; `on_wait` is called once if there is one. Where a file system has
  /// no locks nobody waits, and an entry may be made twice.
  Result<CacheLock> lock(CacheKind kind, std::string_view key, const std::function<void()>& on_wait) const;

 private:
  std::filesystem::path root_;
};

/// What users call the model in a folder: "ORG/NAME" in the Hub's cache, else the name of the folder alone.
std::string model_name(const std::filesystem::path& model);

/// Whether that is the file of a name, in a cache's folder of a key.
bool is_name_file(const std::filesystem::path& path);

/// SHA-256 (hex) of a file.
Result<std::string> hash_of_file(const std::filesystem::path& path);

/// "captures/KEY/HASH.capture": where an entry lies in a cache, and what it is called in an exported one.
std::string cache_name(CacheKind kind, std::string_view key, std::string_view hash);
/// The entry that such a name stands for (kind, key and hash); nullopt if it is none.
std::optional<CacheEntry> parse_cache_name(std::string_view name);

}  // namespace argosy
