#include "base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>
#endif

namespace argosy {
namespace {

#if defined(__x86_64__)

bool has_bit(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

/// Whether the system keeps the upper halves of the registers when it switches between programs.
bool keeps_wide_registers() {
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_bit(low, 0b110);
}

// Not __builtin_cpu_supports: it needs a part of the compiler's library that zig does not have.
Processor ask() {
  Processor found;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return found;
  found.pclmul = has_bit(c, bit_PCLMUL | bit_SSE4_1);
  bool wide = has_bit(c, bit_OSXSAVE | bit_AVX) && keeps_wide_registers();
  found.f16c = wide && has_bit(c, bit_F16C);
  found.avx2 = wide && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && has_bit(b, bit_AVX2);
  return found;
}

#else

Processor ask() { return {}; }

#endif

}  // namespace

const Processor& processor() {
  static const Processor found = ask();
  return found;
}

}  // namespace argosy
