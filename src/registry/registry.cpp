#include "registry/registry.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "io/write_file.h"
#include "tensor/sha256.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::array kKinds = {CacheKind::kCapture, CacheKind::kWeightPlan, CacheKind::kCheck};
constexpr size_t kMaxSigners = 8;

std::string hash_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

Error with_hint(Error error, const std::string& location) {
  error.in(format("the registry {}", location));
  return error;
}

/// Where a folder's index is, as text, and what is in it if it is signed by this key.
struct KnownIndex {
  std::optional<RegistryIndex> index;
  std::string signatures;
};

Result<KnownIndex> known_index(const RegistrySource& source, CacheKind kind, const std::string& key,
                               const SigningKey& signing) {
  const std::string name = index_name(kind, key);
  ARGOSY_TRY(auto text, source.read(name, kMaxIndexBytes));
  if (!text) return KnownIndex{};
  ARGOSY_TRY(auto signatures, source.read(signature_name(kind, key), kMaxSignatureBytes));
  const PublicKey own = signing.public_key();
  auto signer = check_signatures(*text, signatures.value_or(""), std::span(&own, 1));
  if (!signer) {
    signer.error().hint = "push into a folder that this key signs, or remove that index";
    return fail(std::move(signer.error().in(name)));
  }
  ARGOSY_TRY(RegistryIndex index, RegistryIndex::parse(*text, name));
  return KnownIndex{std::move(index), *signatures};
}

/// The new signature first; earlier ones stay for readers that have read the index before.
std::string with_signature(const std::string& line, const std::string& earlier) {
  std::string text = line + "\n";
  size_t count = 1, begin = 0;
  while (begin < earlier.size() && count++ < kMaxSigners) {
    const size_t end = std::min(earlier.find('\n', begin), earlier.size());
    text += earlier.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

Status copy_entry(const CaptureCache& cache, const CacheEntry& entry, const fs::path& destination) {
  ARGOSY_TRY(bool is_intact, cache.is_intact(entry));
  if (!is_intact) {
    return fail(ErrorCode::kCorruptFile, format("{} is damaged", quoted(entry.path.native(), 1000)),
                "run: argosy cache prune");
  }
  std::error_code failure;
  fs::create_directories(destination.parent_path(), failure);
  if (failure) return fail(system_error("create", destination.parent_path(), failure.value()));
  ARGOSY_TRY(OutputFile file, OutputFile::create(destination, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(file.copy_from({entry.path.string(), 0, entry.bytes}));
  return file.commit();
}

/// Of one kind and key. Returns those that are new.
Result<std::vector<CacheEntry>> push_key(const CaptureCache& cache, std::span<const CacheEntry> entries,
                                         const fs::path& folder, const SigningKey& signing) {
  const CacheKind kind = entries[0].kind;
  const std::string& key = entries[0].key;
  ARGOSY_TRY(KnownIndex known, known_index(*folder_source(folder), kind, key, signing));
  RegistryIndex index = known.index.value_or(RegistryIndex{kind, key, 0, {}});
  std::vector<RegistryIndex::Entry> listed;
  std::vector<CacheEntry> added;
  for (const CacheEntry& entry : entries) {
    listed.push_back({entry.hash, entry.bytes});
    if (std::ranges::find(index.entries, listed.back()) != index.entries.end()) continue;
    ARGOSY_TRY_STATUS(copy_entry(cache, entry, folder / cache_name(kind, key, entry.hash)));
    added.push_back(entry);
  }
  if (added.empty()) return added;
  for (const RegistryIndex::Entry& entry : index.entries) {
    if (std::ranges::find(listed, entry) == listed.end()) listed.push_back(entry);
  }
  index.entries = std::move(listed);
  ++index.serial;
  const std::string text = index.text();
  ARGOSY_TRY_STATUS(write_file(folder / signature_name(kind, key), with_signature(signing.sign(text), known.signatures),
                               Overwrite::kReplace));
  ARGOSY_TRY_STATUS(write_file(folder / index_name(kind, key), text, Overwrite::kReplace));
  return added;
}

}  // namespace

Result<std::optional<RegistryIndex>> Registry::find(CacheKind kind, const std::string& key) const {
  const std::string name = index_name(kind, key);
  auto look = [&]() -> Result<std::optional<RegistryIndex>> {
    ARGOSY_TRY(std::optional<std::string> text, source_->read(name, kMaxIndexBytes));
    if (!text) return std::nullopt;
    if (!text->starts_with('{'))  // such as a page that says that there is nothing
      return fail(ErrorCode::kCorruptFile, format("{} is no index of a registry: it is no JSON", name));
    ARGOSY_TRY(std::optional<std::string> signatures, source_->read(signature_name(kind, key), kMaxSignatureBytes));
    if (!signatures) return fail(ErrorCode::kCorruptFile, format("{} has no file of signatures", name));
    auto signer = check_signatures(*text, *signatures, trusted_);
    if (!signer) return fail(std::move(signer.error().in(name)));
    ARGOSY_TRY(RegistryIndex index, RegistryIndex::parse(*text, name));
    if (index.kind != kind || index.key != key) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} is the index of another key, {}", name, index_name(index.kind, index.key)));
    }
    ARGOSY_TRY_STATUS(check_is_new(index, *signer));
    return index;
  };
  auto found = look();
  if (!found) return fail(with_hint(std::move(found.error()), location()));
  return found;
}

Status Registry::fetch(const RegistryIndex& index, const fs::path& output) const {
  const RegistryIndex::Entry& entry = index.entries.front();
  const std::string name = cache_name(index.kind, index.key, entry.hash);
  auto take = [&]() -> Status {
    ARGOSY_TRY(OutputFile file, OutputFile::create(output, Overwrite::kReplace));
    Sha256 hash;
    ARGOSY_TRY_STATUS(source_->fetch(name, entry.bytes, [&](std::span<const std::byte> bytes) -> Status {
      hash.add(bytes);
      return file.write(bytes);
    }));
    if (hash.hex() != entry.hash)
      return fail(ErrorCode::kCorruptFile, format("the bytes of {} have another hash than its name says", name));
    return file.commit();
  };
  Status taken = take();
  if (!taken) return fail(with_hint(std::move(taken.error()), location()));
  return taken;
}

Status Registry::check_is_new(const RegistryIndex& index, const PublicKey& key) const {
  const std::string name = index_name(index.kind, index.key);
  const fs::path path = memory_ / hash_of(format("{}\n{}\n{}", location(), key.text(), name));
  uint64_t newest = 0;
  if (auto text = read_text_file(path, 64)) std::from_chars(text->data(), text->data() + text->size(), newest);
  if (index.serial < newest) {
    return fail(ErrorCode::kCorruptFile,
                format("{} is older than one that was there before (number {}, then {})", name, newest, index.serial),
                format("if that is right, remove {}", quoted(path.native(), 1000)));
  }
  if (index.serial == newest) return {};
  std::error_code failure;
  fs::create_directories(memory_, failure);
  // Where nothing can be kept, an older index would not be noticed: better no registry.
  if (failure) return fail(system_error("create", memory_, failure.value()));
  return write_file(path, format("{}\n", index.serial), Overwrite::kReplace);
}

Result<std::vector<CacheEntry>> push_entries(const CaptureCache& cache, std::span<const CacheEntry> entries,
                                             const fs::path& folder, const SigningKey& key) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return fail(system_error("create", folder, failure.value()));
  std::vector<CacheEntry> added;
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    auto is_alike = [&](const CacheEntry& each) {
      return each.kind == entries[begin].kind && each.key == entries[begin].key;
    };
    while (end < entries.size() && is_alike(entries[end])) ++end;
    ARGOSY_TRY(std::vector<CacheEntry> pushed, push_key(cache, entries.subspan(begin, end - begin), folder, key));
    added.insert(added.end(), pushed.begin(), pushed.end());
  }
  return added;
}

Result<std::vector<CacheEntry>> pull_entries(const CaptureCache& cache, const Registry& registry,
                                             std::span<const std::string> keys, const CheckEntry& check) {
  std::vector<CacheEntry> added;
  for (const std::string& key : keys) {
    bool is_known = false;
    for (CacheKind kind : kKinds) {
      ARGOSY_TRY(std::optional<RegistryIndex> index, registry.find(kind, key));
      if (!index) continue;
      is_known = true;
      CacheEntry entry{kind, key, index->entries[0].hash, {}, 0, {}};
      entry.path = cache.root() / cache_name(kind, key, entry.hash);
      if (cache.is_intact(entry).value_or(false)) continue;
      ARGOSY_TRY(fs::path temporary, cache.temporary(kind, key));
      auto take = [&]() -> Result<CacheEntry> {
        ARGOSY_TRY_STATUS(registry.fetch(*index, temporary));
        ARGOSY_TRY_STATUS(check(kind, temporary));
        return cache.add(kind, key, temporary);
      };
      auto taken = take();
      std::error_code ignored;
      fs::remove(temporary, ignored);
      if (!taken) return fail(std::move(taken.error()));
      added.push_back(*std::move(taken));
    }
    if (!is_known)
      return fail(ErrorCode::kNotFound, format("the registry {} has nothing under {}", registry.location(), key));
  }
  return added;
}

Result<std::vector<std::string>> keys_of_folder(const fs::path& folder) {
  ARGOSY_TRY(std::vector<CacheEntry> entries, CaptureCache(folder).list());
  std::set<std::string> keys;
  for (const CacheEntry& entry : entries) keys.insert(entry.key);
  return std::vector<std::string>(keys.begin(), keys.end());
}

}  // namespace argosy
