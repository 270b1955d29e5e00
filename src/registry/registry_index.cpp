#include "registry/registry_index.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr std::string_view kFormat = "argosy-registry";
constexpr int64_t kVersion = 1;
constexpr size_t kMaxEntries = 1000;
constexpr std::string_view kIndexFile = "index.json", kSignatures = ".sig";
constexpr JsonLimits kLimits = {kMaxIndexBytes, 8 * kMaxEntries};

/// "captures/KEY", as it is in names and in the index itself.
std::string folder_of(CacheKind kind, std::string_view key) {
  const std::string name = cache_name(kind, key, "");
  return name.substr(0, name.rfind('/'));
}

tl::unexpected<Error> no_index(std::string_view name, std::string_view why) {
  return fail(ErrorCode::kCorruptFile, format("{} is no index of a registry: {}", name, why));
}

/// The kind and the key of "captures/KEY".
std::optional<CacheEntry> parse_folder(std::string_view text) {
  const std::string any_hash(64, '0');
  for (std::string_view extension : {".capture", ".json"}) {
    if (auto entry = parse_cache_name(format("{}/{}{}", text, any_hash, extension))) return entry;
  }
  return std::nullopt;
}

}  // namespace

std::string index_name(CacheKind kind, std::string_view key) {
  return format("{}/{}", folder_of(kind, key), kIndexFile);
}

std::string signature_name(CacheKind kind, std::string_view key) {
  return format("{}{}", index_name(kind, key), kSignatures);
}

bool is_registry_name(std::string_view name) {
  if (parse_cache_name(name)) return true;
  if (name.ends_with(kSignatures)) name.remove_suffix(kSignatures.size());
  if (!name.ends_with(kIndexFile)) return false;
  name.remove_suffix(kIndexFile.size());
  return name.ends_with('/') && parse_folder(name.substr(0, name.size() - 1)).has_value();
}

Result<RegistryIndex> RegistryIndex::parse(std::string_view text, std::string_view name) {
  if (text.size() > kMaxIndexBytes) return no_index(name, format("it has {} bytes", text.size()));
  auto document = JsonDocument::parse(text, name, kLimits);
  if (!document) return no_index(name, "it is no JSON");
  JsonView root = document->root();
  if (text_at(root, "format") != kFormat) return no_index(name, format("its format is not {}", quoted(kFormat)));
  if (root.find("version").as_integer() != kVersion) {
    return fail(ErrorCode::kUnsupportedVersion, format("{} is of a version that is not read", name),
                "use a newer argosy");
  }
  auto of = parse_folder(root.find("of").as_string().value_or(""));
  auto serial = root.find("serial").as_unsigned();
  JsonView entries = root.find("entries");
  if (!of || !serial || *serial == 0 || !entries.is_array()) return no_index(name, "it lacks of, serial or entries");
  RegistryIndex index{of->kind, of->key, *serial, {}};
  std::set<std::string> hashes;
  for (JsonView item : entries.items()) {
    Entry entry{text_at(item, "hash"), item.find("bytes").as_unsigned().value_or(0)};
    // As a name it would have to be one of the cache's: so nothing leads out of the folder.
    if (!parse_cache_name(cache_name(index.kind, index.key, entry.hash)))
      return no_index(name, format("{} is no hash", quoted(entry.hash)));
    if (entry.bytes == 0 || entry.bytes > kMaxEntryBytes)
      return no_index(name, format("an entry of it has {} bytes", entry.bytes));
    if (!hashes.insert(entry.hash).second) return no_index(name, "it has an entry twice");
    index.entries.push_back(std::move(entry));
    if (index.entries.size() > kMaxEntries) return no_index(name, format("it has more than {} entries", kMaxEntries));
  }
  if (index.entries.empty()) return no_index(name, "it has no entries");
  if (index.text() != text) return no_index(name, "it is not in the form that argosy writes");
  return index;
}

std::string RegistryIndex::text() const {
  JsonWriter writer(JsonWriter::Layout::kIndented);
  writer.begin_object().key("format").value(kFormat).key("version").value(kVersion);
  writer.key("of").value(folder_of(kind, key)).key("serial").value(serial);
  writer.key("entries").begin_array();
  for (const Entry& entry : entries)
    writer.begin_object().key("hash").value(entry.hash).key("bytes").value(entry.bytes).end_object();
  writer.end_array().end_object();
  return writer.take() + "\n";
}

}  // namespace argosy
