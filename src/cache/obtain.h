#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "cache/capture_cache.h"

namespace argosy {

/// How a file that the cache lacks comes into being.
struct CacheWork {
  CacheKind kind = CacheKind::kCapture;
  std::string key;
  std::string name;    // of the model; the cache keeps the first one for a key
  bool renew = false;  // make it even if it is there
  /// Writes the file; run by one process at a time for each key.
  std::function<Status(const std::filesystem::path& output)> make;
  /// Writes the file from where others share theirs, before it is made; false: they have none. May be empty.
  std::function<Result<bool>(const std::filesystem::path& output)> fetch;
  std::function<void(const Error& error)> on_refused;                 // what others share is not used; may be empty
  std::function<void()> on_wait;                                      // another process is making it; may be empty
  std::function<void(const std::filesystem::path& path)> on_damaged;  // an entry that is passed over; may be empty
};

struct Obtained {
  CacheEntry entry;
  bool was_cached = false;   // by an earlier run, or by another process while this one waited
  bool was_fetched = false;  // from where others share theirs
};

/// The newest entry of the key, made if there is none. What was made is read once, as its users will, before it enters
/// the cache; an unreadable one never does.
Result<Obtained> obtain(const CaptureCache& cache, const CacheWork& work);

/// Whether a file can be an entry of that kind: reads it as its users will.
Status check_readable(CacheKind kind, const std::filesystem::path& path);

}  // namespace argosy
