#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/capture_cache.h"

namespace argosy {

/// What a registry has under one key: captures/KEY/index.json, with its signatures in index.json.sig. It names its own
/// kind and key, so that one cannot stand in another's place.
struct RegistryIndex {
  struct Entry {
    std::string hash;
    uint64_t bytes = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  CacheKind kind = CacheKind::kCapture;
  std::string key;
  uint64_t serial = 1;         // grows whenever the entries change
  std::vector<Entry> entries;  // the best first; at least one

  /// Refuses everything that is not exactly what text() may give. `name` is for messages.
  static Result<RegistryIndex> parse(std::string_view text, std::string_view name);
  std::string text() const;
};

inline constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 18;
inline constexpr uint64_t kMaxSignatureBytes = uint64_t{1} << 14;
inline constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 31;

/// "captures/KEY/index.json"
std::string index_name(CacheKind kind, std::string_view key);
/// "captures/KEY/index.json.sig"
std::string signature_name(CacheKind kind, std::string_view key);
/// Whether a file of that name may be one of a registry: an entry, an index or its signatures.
bool is_registry_name(std::string_view name);

}  // namespace argosy
