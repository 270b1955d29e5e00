// Any bytes as a .pte file, and as a delegate's payload: refused or read, and what is read can be looked at: indices
// are in range, lifetimes are found.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "backends/executorch/memory_plan.h"
#include "backends/executorch/read.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  auto read = [&](uint64_t offset, std::span<std::byte> out) -> Status {
    require(offset <= size && out.size() <= size - offset);  // the reader checks before it reads
    if (!out.empty()) std::memcpy(out.data(), data + offset, out.size());
    return {};
  };
  require(executorch::xnnpack_contents(std::as_bytes(std::span(data, size))).payload_bytes == size);
  auto file = executorch::read_program(read, size, "fuzz");
  if (!file) return 0;
  require(file->delegates.size() == file->methods.size());
  for (const executorch::Method& method : file->methods) {
    require(method.instructions.size() <= size);
    for (const executorch::Lifetime& each : executorch::lifetimes(method)) require(each.first <= each.last);
  }
  return 0;
}
