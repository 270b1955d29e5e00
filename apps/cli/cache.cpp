#include <algorithm>

#include "base/text.h"
#include "cache/cache_contents.h"
#include "commands.h"
#include "io/json.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr size_t kShownDigits = 12;

std::string_view name_of(CacheKind kind) {
  return kind == CacheKind::kCapture ? "capture" : kind == CacheKind::kWeightPlan ? "plan" : "check";
}

std::string age_of(const CacheEntry& entry) {
  auto hours =
      std::chrono::duration_cast<std::chrono::hours>(std::filesystem::file_time_type::clock::now() - entry.written);
  return hours.count() < 48 ? count_of(static_cast<uint64_t>(std::max<int64_t>(hours.count(), 0)), "hour")
                            : count_of(static_cast<uint64_t>(hours.count() / 24), "day");
}

uint64_t bytes_of(const std::vector<CacheEntry>& entries) {
  uint64_t sum = 0;
  for (const CacheEntry& entry : entries) sum += entry.bytes;
  return sum;
}

/// "2 entries, 30 MB"
std::string total_of(const std::vector<CacheEntry>& entries) {
  return format("{} {}, {}", entries.size(), entries.size() == 1 ? "entry" : "entries",
                format_bytes(bytes_of(entries)));
}

/// Those whose key begins with one of the given digits; all if none are given.
Result<std::vector<CacheEntry>> chosen(const CaptureCache& cache, const std::vector<std::string>& keys) {
  ARGOSY_TRY(std::vector<CacheEntry> entries, cache.list());
  if (keys.empty()) return entries;
  for (const std::string& key : keys) {
    if (std::ranges::none_of(entries, [&](const CacheEntry& entry) { return entry.key.starts_with(key); }))
      return fail(ErrorCode::kNotFound, format("the cache has no entry whose key begins with {}", argosy::quoted(key)),
                  "argosy cache ls shows what it has");
  }
  std::erase_if(entries, [&](const CacheEntry& entry) {
    return std::ranges::none_of(keys, [&](const std::string& key) { return entry.key.starts_with(key); });
  });
  return entries;
}

std::string as_text(const CaptureCache& cache, const std::vector<CacheEntry>& entries) {
  Table table("llllllrr");
  for (const CacheEntry& entry : entries) {
    auto description = describe(entry);
    CacheDescription about = description ? *description : CacheDescription{"damaged", "", "", ""};
    table.add({std::string(name_of(entry.kind)), entry.key.substr(0, kShownDigits), about.model_class, about.task,
               about.torch.empty() ? "" : format("torch {}", about.torch),
               about.transformers.empty() ? "" : format("transformers {}", about.transformers),
               format_bytes(entry.bytes), age_of(entry)});
  }
  return format("{}{}: {}\n", table.text(), cache.root().string(), total_of(entries));
}

std::string as_json(const CaptureCache& cache, const std::vector<CacheEntry>& entries) {
  JsonWriter writer(JsonWriter::Layout::kIndented);
  writer.begin_object().key("cache").value(cache.root().string()).key("entries").begin_array();
  for (const CacheEntry& entry : entries) {
    auto description = describe(entry);
    CacheDescription about = description.value_or(CacheDescription{});
    writer.begin_object().key("kind").value(name_of(entry.kind)).key("key").value(entry.key);
    writer.key("hash").value(entry.hash).key("path").value(entry.path.string()).key("bytes").value(entry.bytes);
    writer.key("readable").value(description.has_value()).key("model_class").value(about.model_class);
    writer.key("task").value(about.task).key("torch").value(about.torch);
    writer.key("transformers").value(about.transformers).end_object();
  }
  writer.end_array().key("total_bytes").value(bytes_of(entries)).end_object();
  return writer.take() + "\n";
}

Result<std::string> run_action(const CacheOptions& options, const CaptureCache& cache) {
  switch (options.action) {
    case CacheAction::kList: {
      ARGOSY_TRY(std::vector<CacheEntry> entries, cache.list());
      return options.json ? as_json(cache, entries) : as_text(cache, entries);
    }
    case CacheAction::kPrune: {
      PruneOptions prune_options;
      prune_options.all = options.all;
      prune_options.dry_run = options.dry_run;
      if (options.older_than_days >= 0) prune_options.age = std::chrono::hours(24 * options.older_than_days);
      ARGOSY_TRY(std::vector<CacheEntry> removed, prune(cache, prune_options));
      return format("{}: {}\n", options.dry_run ? "would be removed" : "removed", total_of(removed));
    }
    case CacheAction::kExport: {
      ARGOSY_TRY(std::vector<CacheEntry> entries, chosen(cache, options.keys));
      ARGOSY_TRY_STATUS(export_entries(entries, options.path));
      return format("{}: {}\n", options.path, total_of(entries));
    }
    case CacheAction::kImport: break;
  }
  ARGOSY_TRY(std::vector<CacheEntry> added, import_entries(cache, options.path));
  return format("new in {}: {}\n", cache.root().string(), total_of(added));
}

}  // namespace

int run_cache(const CacheOptions& options, const Environment& environment, Terminal& terminal) {
  auto text = run_action(options, CaptureCache(environment.cache));
  if (text) return terminal.print(*text) ? kDone : kFailed;
  terminal.print_error(text.error());
  return kFailed;
}

}  // namespace argosy::cli
