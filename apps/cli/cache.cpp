#include <algorithm>

#include "base/text.h"
#include "cache/cache_contents.h"
#include "commands.h"
#include "io/json.h"
#include "registry.h"
#include "registry/registry_server.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr size_t kShownName = 30;

std::string_view name_of(CacheKind kind) {
  return kind == CacheKind::kCapture ? "capture" : kind == CacheKind::kWeightPlan ? "plan" : "check";
}

uint64_t seconds_since(const CacheEntry& entry) {
  auto age =
      std::chrono::duration_cast<std::chrono::seconds>(std::filesystem::file_time_type::clock::now() - entry.written);
  return static_cast<uint64_t>(std::max<int64_t>(age.count(), 0));
}

std::string age_of(const CacheEntry& entry) {
  const uint64_t minutes = seconds_since(entry) / 60;
  if (minutes == 0) return "just now";
  if (minutes < 120) return count_of(minutes, "minute");
  return minutes < 48 * 60 ? count_of(minutes / 60, "hour") : count_of(minutes / (24 * 60), "day");
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

std::string shortened(const std::string& name) {
  if (name.size() <= kShownName) return name;
  size_t end = kShownName - 1;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;  // no half character
  return name.substr(0, end) + "…";
}

/// 80 columns wide at most; long rows are as wide as they are.
std::string as_text(const CaptureCache& cache, const std::vector<CacheEntry>& entries, bool is_long) {
  Table table(is_long ? "lllrlllll" : "lllrl");
  std::vector<std::string> titles = {"kind", "key", "first made for", "size", "age"};
  if (is_long) titles.insert(titles.end(), {"class", "task", "torch", "transformers"});
  if (!entries.empty()) table.add(titles);
  for (const CacheEntry& entry : entries) {
    auto description = describe(entry);
    CacheDescription about = description ? *description : CacheDescription{"damaged", "", "", ""};
    std::string name = cache.name_of(entry);
    if (name.empty()) name = about.model_class;
    std::vector<std::string> row = {std::string(name_of(entry.kind)), entry.key.substr(0, kShownDigits),
                                    is_long ? name : shortened(description ? name : "damaged"),
                                    format_bytes(entry.bytes), age_of(entry)};
    if (is_long) row.insert(row.end(), {about.model_class, about.task, about.torch, about.transformers});
    table.add(std::move(row));
  }
  return format("{}{}: {}\n", table.text(), cache.root().string(), total_of(entries));
}

void add_members(const CaptureCache& cache, const std::vector<CacheEntry>& entries, JsonWriter& writer) {
  writer.key("cache").value(cache.root().string()).key("entries").begin_array();
  for (const CacheEntry& entry : entries) {
    auto description = describe(entry);
    CacheDescription about = description.value_or(CacheDescription{});
    writer.begin_object().key("kind").value(name_of(entry.kind)).key("key").value(entry.key);
    writer.key("hash").value(entry.hash).key("path").value(entry.path.string()).key("bytes").value(entry.bytes);
    writer.key("age_seconds").value(seconds_since(entry)).key("name").value(cache.name_of(entry));
    writer.key("readable").value(description.has_value()).key("model_class").value(about.model_class);
    writer.key("task").value(about.task).key("torch").value(about.torch);
    writer.key("transformers").value(about.transformers).end_object();
  }
  writer.end_array().key("total_bytes").value(bytes_of(entries));
}

/// What an action was about; `entries` as the action left them.
void add_members(std::string_view what, const std::vector<CacheEntry>& entries, JsonWriter& writer) {
  writer.key(what).begin_array();
  for (const CacheEntry& entry : entries) {
    writer.begin_object().key("kind").value(name_of(entry.kind)).key("key").value(entry.key);
    writer.key("hash").value(entry.hash).key("bytes").value(entry.bytes).end_object();
  }
  writer.end_array().key("total_bytes").value(bytes_of(entries));
}

Result<std::vector<CacheEntry>> pull(const CacheOptions& options, const CaptureCache& cache,
                                     const Environment& environment) {
  ARGOSY_TRY(Registry registry, open_registry(environment));
  std::vector<std::string> keys = options.keys;
  if (keys.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(registry.location(), ignored)) {
      return fail(ErrorCode::kInvalidInput, "a web server does not say which keys it has",
                  "give whole keys, as argosy cache ls --json shows them");
    }
    ARGOSY_TRY(keys, keys_of_folder(registry.location()));
  }
  return pull_entries(cache, registry, keys, check_readable);
}

/// The text; the members of the summary are added.
Result<std::string> run_action(const CacheOptions& options, const CaptureCache& cache, const Environment& environment,
                               Terminal& terminal) {
  JsonWriter& writer = terminal.summary().members();
  switch (options.action) {
    case CacheAction::kList: {
      ARGOSY_TRY(std::vector<CacheEntry> entries, cache.list());
      add_members(cache, entries, writer);
      return as_text(cache, entries, options.is_long);
    }
    case CacheAction::kPrune: {
      PruneOptions prune_options;
      prune_options.all = options.all;
      prune_options.dry_run = options.dry_run;
      if (options.older_than_days >= 0) prune_options.age = std::chrono::hours(24 * options.older_than_days);
      ARGOSY_TRY(std::vector<CacheEntry> removed, prune(cache, prune_options));
      writer.key("dry_run").value(options.dry_run);
      add_members("removed", removed, writer);
      return format("{}: {}\n", options.dry_run ? "would be removed" : "removed", total_of(removed));
    }
    case CacheAction::kExport: {
      ARGOSY_TRY(std::vector<CacheEntry> entries, chosen(cache, options.keys));
      ARGOSY_TRY_STATUS(export_entries(entries, options.path));
      writer.key("output").value(options.path);
      add_members("exported", entries, writer);
      return format("{}: {}\n", options.path, total_of(entries));
    }
    case CacheAction::kKeygen: {
      ARGOSY_TRY(SigningKey key, SigningKey::create(options.path));
      writer.key("output").value(options.path).key("public_key").value(key.public_key().text());
      return key.public_key().text() + "\n";
    }
    case CacheAction::kPush: {
      ARGOSY_TRY(SigningKey key, SigningKey::read(options.signing_key));
      ARGOSY_TRY(std::vector<CacheEntry> entries, chosen(cache, options.keys));
      ARGOSY_TRY(std::vector<CacheEntry> added, push_entries(cache, entries, options.path, key));
      writer.key("output").value(options.path).key("public_key").value(key.public_key().text());
      add_members("pushed", added, writer);
      return format("new in {}: {}\n", options.path, total_of(added));
    }
    case CacheAction::kPull: {
      ARGOSY_TRY(std::vector<CacheEntry> added, pull(options, cache, environment));
      writer.key("cache").value(cache.root().string());
      add_members("added", added, writer);
      return format("new in {}: {}\n", cache.root().string(), total_of(added));
    }
    case CacheAction::kServe: {
      ARGOSY_TRY_STATUS(serve_registry(options.path, {options.host, options.port}, [&](const std::string& url) {
        terminal.print_error(format("argosy: {} is served at {}\n", options.path, url));
      }));
      return "";
    }
    case CacheAction::kImport: break;
  }
  ARGOSY_TRY(std::vector<CacheEntry> added, import_entries(cache, options.path));
  writer.key("cache").value(cache.root().string());
  add_members("added", added, writer);
  return format("new in {}: {}\n", cache.root().string(), total_of(added));
}

}  // namespace

int run_cache(const CacheOptions& options, const Environment& environment, Terminal& terminal) {
  auto text = run_action(options, CaptureCache(environment.cache), environment, terminal);
  if (!text) {
    terminal.print_error(text.error());
    return kFailed;
  }
  return terminal.wants_json() || terminal.print(*text) ? kDone : kFailed;
}

}  // namespace argosy::cli
