#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/capture_cache.h"

namespace argosy {

/// What an entry says of itself. Empty texts are not known.
struct CacheDescription {
  std::string model_class, task;
  std::string torch, transformers;  // versions that made it
};
Result<CacheDescription> describe(const CacheEntry& entry);

/// The configuration that a capture was made of, as JSON.
Result<std::string> capture_configuration(const std::filesystem::path& capture);

struct PruneOptions {
  bool all = false;                       // everything, not just what is damaged or superseded
  std::optional<std::chrono::hours> age;  // entries older than this, too
  bool dry_run = false;
};
/// What was removed (or would be): damaged entries, those that a newer one of their key supersedes, and what the
/// options ask for. Files that are no entries and older than a day, which something that was killed left, go too.
Result<std::vector<CacheEntry>> prune(const CaptureCache& cache, const PruneOptions& options);

/// Writes entries into one zip file, under their names in a cache. Damaged ones are an error. An older file is
/// replaced.
Status export_entries(const std::vector<CacheEntry>& entries, const std::filesystem::path& archive);

/// Takes the entries of an exported zip file, or of another cache's folder. Each is checked against its hash first;
/// what is there already is left alone. Returns those that are new.
Result<std::vector<CacheEntry>> import_entries(const CaptureCache& cache, const std::filesystem::path& from);

}  // namespace argosy
