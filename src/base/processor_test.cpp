#include "base/processor.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

#if defined(__x86_64__) && defined(__GNUC__)
TEST(Processor, IsWhatTheCompilersLibrarySays) {
  EXPECT_EQ(processor().avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(processor().f16c, __builtin_cpu_supports("f16c") != 0);
  EXPECT_EQ(processor().pclmul, __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0);
}
#endif

}  // namespace
}  // namespace argosy
