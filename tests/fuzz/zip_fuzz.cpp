// Any bytes as a zip file: refused or read, and entries lie inside the file, apart from each other, under safe names.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "io/zip.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  ReadAt read_at = [&](uint64_t offset, std::span<std::byte> out) -> Status {
    require(offset <= size && out.size() <= size - offset);  // the parser checks before it reads
    if (!out.empty()) std::memcpy(out.data(), data + offset, out.size());
    return {};
  };
  auto entries = read_zip_directory(read_at, size, "fuzz");
  if (!entries) return 0;
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  for (const ZipEntry& entry : *entries) {
    require(problem_of_entry_name(entry.name).empty());
    require(entry.offset <= size && entry.size <= size - entry.offset);
    extents.emplace_back(entry.offset, entry.offset + entry.size);
  }
  std::sort(extents.begin(), extents.end());
  for (size_t i = 1; i < extents.size(); ++i) require(extents[i - 1].second <= extents[i].first);
  return 0;
}
