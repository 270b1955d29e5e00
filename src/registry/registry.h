#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/capture_cache.h"
#include "registry/registry_index.h"
#include "registry/registry_source.h"
#include "registry/signing.h"

namespace argosy {

/// Captures, weight plans and passed checks of others, by the same keys as in a cache: files that are named by their
/// hashes, under indices that are signed. Nothing in it is code, and what does not fit is refused by name.
class Registry {
 public:
  /// `memory` is a folder of the user's in which is kept how new the indices were, so that older ones are refused.
  Registry(std::unique_ptr<RegistrySource> source, std::vector<PublicKey> trusted, std::filesystem::path memory)
      : source_(std::move(source)), trusted_(std::move(trusted)), memory_(std::move(memory)) {}
  const std::string& location() const { return source_->location(); }

  /// The index of a key, if the registry has one. An error: it is there and not to be trusted, or cannot be read.
  Result<std::optional<RegistryIndex>> find(CacheKind kind, const std::string& key) const;
  /// Writes the first entry of an index to a new file, and compares its hash. Whether its contents make sense is for
  /// the caller to say.
  Status fetch(const RegistryIndex& index, const std::filesystem::path& output) const;

 private:
  Status check_is_new(const RegistryIndex& index, const PublicKey& key) const;

  std::unique_ptr<RegistrySource> source_;
  std::vector<PublicKey> trusted_;
  std::filesystem::path memory_;
};

/// Whether a file can be what it is called in a cache: read as its users will.
using CheckEntry = std::function<Status(CacheKind kind, const std::filesystem::path& path)>;

/// Puts entries of a cache into a registry's folder and signs the indices that change. Indices that are there must be
/// of the same key. Entries appear before the index that names them, so that readers always find what fits together.
/// Returns the entries that are new.
Result<std::vector<CacheEntry>> push_entries(const CaptureCache& cache, std::span<const CacheEntry> entries,
                                             const std::filesystem::path& folder, const SigningKey& key);

/// Takes what a registry has under these keys into the cache. Returns the entries that are new.
Result<std::vector<CacheEntry>> pull_entries(const CaptureCache& cache, const Registry& registry,
                                             std::span<const std::string> keys, const CheckEntry& check);

/// The keys that a registry's folder has, sorted.
Result<std::vector<std::string>> keys_of_folder(const std::filesystem::path& folder);

}  // namespace argosy
