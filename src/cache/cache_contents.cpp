#include "cache/cache_contents.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "io/zip.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxManifest = uint64_t{64} << 20;
constexpr size_t kScratch = size_t{1} << 20;
constexpr auto kLeftoverAge = std::chrono::hours(24);
constexpr std::array<std::string_view, 4> kFolders = {"captures/", "plans/", "checks/", "locks/"};

Result<JsonDocument> manifest_of(const CacheEntry& entry) {
  if (entry.kind != CacheKind::kCapture) {
    ARGOSY_TRY(std::string text, read_text_file(entry.path));
    return JsonDocument::parse_owned(std::move(text), quoted(entry.path.native(), 1000));
  }
  ARGOSY_TRY(ZipReader zip, ZipReader::open(entry.path));
  const ZipEntry* manifest = zip.find("capture.json");
  if (manifest == nullptr)
    return fail(ErrorCode::kCorruptFile, format("{} is no capture", quoted(entry.path.native(), 1000)));
  ARGOSY_TRY(std::string text, zip.read(*manifest, kMaxManifest));
  return JsonDocument::parse_owned(std::move(text), "capture.json");
}

/// A file as a row of bytes, so that writers stream it.
Result<TensorSourcePtr> bytes_of_file(const std::shared_ptr<const ReadFile>& file, uint64_t offset, uint64_t size) {
  return file_slice(file, offset, DType::kU8, {static_cast<int64_t>(size)});
}

/// Copies bytes to a temporary of the cache; enters them if they have the hash.
Result<CacheEntry> take(const CaptureCache& cache, const CacheEntry& wanted, const TensorSource& bytes) {
  ARGOSY_TRY(fs::path temporary, cache.temporary(wanted.kind, wanted.key));
  ARGOSY_TRY(OutputFile file, OutputFile::create(temporary, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(file.append(bytes, kScratch));
  ARGOSY_TRY_STATUS(file.commit());
  ARGOSY_TRY(std::string hash, hash_of_file(temporary));
  if (hash != wanted.hash) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    return fail(ErrorCode::kCorruptFile,
                format("{} is damaged: its bytes have another hash than its name says",
                       cache_name(wanted.kind, wanted.key, wanted.hash)),
                "copy or export it again");
  }
  return cache.add(wanted.kind, wanted.key, temporary);
}

bool is_there(const CaptureCache& cache, const CacheEntry& wanted) {
  CacheEntry own = wanted;
  own.path = cache.root() / cache_name(wanted.kind, wanted.key, wanted.hash);
  return cache.is_intact(own).value_or(false);
}

Result<std::vector<CacheEntry>> import_folder(const CaptureCache& cache, const fs::path& folder) {
  ARGOSY_TRY(std::vector<CacheEntry> entries, CaptureCache(folder).list());
  if (entries.empty())
    return fail(ErrorCode::kInvalidInput, format("{} holds nothing of a cache", quoted(folder.native(), 1000)),
                "give a cache's folder, or a file that cache export wrote");
  std::vector<CacheEntry> added;
  for (const CacheEntry& entry : entries) {
    if (is_there(cache, entry)) continue;
    ARGOSY_TRY(auto file, ReadFile::open(entry.path));
    ARGOSY_TRY(TensorSourcePtr bytes, bytes_of_file(file, 0, file->size()));
    ARGOSY_TRY(CacheEntry own, take(cache, entry, *bytes));
    added.push_back(std::move(own));
  }
  return added;
}

/// Best effort: whatever is in use is younger, or goes next time.
void remove_leftovers(const CaptureCache& cache) {
  auto oldest = fs::file_time_type::clock::now() - kLeftoverAge;
  std::vector<fs::path> leftovers;
  std::error_code failure;
  for (fs::recursive_directory_iterator it(cache.root(), failure), end; !failure && it != end; it.increment(failure)) {
    std::error_code gone;
    std::string name = it->path().lexically_relative(cache.root()).generic_string();
    bool is_ours = std::ranges::any_of(kFolders, [&](std::string_view folder) { return name.starts_with(folder); });
    if (!is_ours || !it->is_regular_file(gone) || parse_cache_name(name) || is_name_file(it->path())) continue;
    if (it->last_write_time(gone) < oldest && !gone) leftovers.push_back(it->path());
  }
  for (const fs::path& path : leftovers) fs::remove(path, failure);
}

}  // namespace

Result<CacheDescription> describe(const CacheEntry& entry) {
  ARGOSY_TRY(JsonDocument document, manifest_of(entry));
  JsonView root = document.root(), versions = root.find("versions");
  return CacheDescription{text_at(root, "model_class"), text_at(root, "task"), text_at(versions, "torch"),
                          text_at(versions, "transformers")};
}

Result<std::string> capture_configuration(const fs::path& capture) {
  CacheEntry entry;
  entry.path = capture;
  ARGOSY_TRY(JsonDocument document, manifest_of(entry));
  JsonWriter writer;
  writer.value(document.root().find("configuration"));
  return writer.take();
}

Result<std::vector<CacheEntry>> prune(const CaptureCache& cache, const PruneOptions& options) {
  ARGOSY_TRY(std::vector<CacheEntry> entries, cache.list());
  auto oldest = fs::file_time_type::clock::now() - options.age.value_or(std::chrono::hours(0));
  std::vector<CacheEntry> removed;
  const CacheEntry* kept = nullptr;  // the newest intact entry of the key at hand
  for (const CacheEntry& entry : entries) {
    bool is_superseded = kept != nullptr && kept->kind == entry.kind && kept->key == entry.key;
    bool is_unwanted = options.all || is_superseded || (options.age && entry.written < oldest);
    if (!is_unwanted && cache.is_intact(entry).value_or(false)) {
      kept = &entry;
      continue;
    }
    if (!options.dry_run) ARGOSY_TRY_STATUS(cache.remove(entry));
    removed.push_back(entry);
  }
  if (!options.dry_run) remove_leftovers(cache);
  return removed;
}

Status export_entries(const std::vector<CacheEntry>& entries, const fs::path& archive) {
  ARGOSY_TRY(OutputFile output, OutputFile::create(archive, Overwrite::kReplace));
  ZipWriter zip(output.sink());
  for (const CacheEntry& entry : entries) {
    ARGOSY_TRY(std::string hash, hash_of_file(entry.path));
    if (hash != entry.hash) {
      return fail(ErrorCode::kCorruptFile, format("{} is damaged", quoted(entry.path.native(), 1000)),
                  "run: argosy cache prune");
    }
    ARGOSY_TRY(auto file, ReadFile::open(entry.path));
    ARGOSY_TRY(TensorSourcePtr bytes, bytes_of_file(file, 0, file->size()));
    ARGOSY_TRY_STATUS(zip.add(cache_name(entry.kind, entry.key, entry.hash), *bytes, kScratch));
  }
  ARGOSY_TRY_STATUS(zip.finish());
  return output.commit();
}

Result<std::vector<CacheEntry>> import_entries(const CaptureCache& cache, const fs::path& from) {
  std::error_code ignored;
  if (fs::is_directory(from, ignored)) return import_folder(cache, from);
  ARGOSY_TRY(ZipReader zip, ZipReader::open(from));
  std::vector<CacheEntry> added;
  for (const ZipEntry& stored : zip.entries()) {
    std::optional<CacheEntry> entry = parse_cache_name(stored.name);
    if (!entry) {
      return fail(ErrorCode::kInvalidInput,
                  format("{} holds {}, which is nothing of a cache", quoted(from.native(), 1000), quoted(stored.name)),
                  "give a file that cache export wrote");
    }
    if (is_there(cache, *entry)) continue;
    ARGOSY_TRY(TensorSourcePtr bytes, bytes_of_file(zip.file(), stored.offset, stored.size));
    ARGOSY_TRY(CacheEntry own, take(cache, *entry, *bytes));
    added.push_back(std::move(own));
  }
  return added;
}

}  // namespace argosy
