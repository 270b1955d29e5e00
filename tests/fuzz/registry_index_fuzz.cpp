// Any bytes as the index of a registry: refused or read. What is read is written as it was, and names nothing outside
// the folder of its key.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "registry/registry_index.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto index = RegistryIndex::parse(text, "fuzz");
  if (!index) return 0;
  require(index->text() == text && !index->entries.empty());
  require(is_registry_name(index_name(index->kind, index->key)));
  for (const RegistryIndex::Entry& entry : index->entries) {
    require(is_registry_name(cache_name(index->kind, index->key, entry.hash)));
    require(entry.bytes > 0 && entry.bytes <= kMaxEntryBytes);
  }
  return 0;
}
