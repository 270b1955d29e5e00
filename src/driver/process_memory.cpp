#include "driver/process_memory.h"

#include <cinttypes>
#include <cstdio>

namespace argosy {

uint64_t peak_rss_bytes() {
  // getrusage would count the parent's memory from before exec, so that a small program started by a large one looks
  // large.
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  uint64_t kilobytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmHWM: %" SCNu64, &kilobytes) == 1) break;
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace argosy
