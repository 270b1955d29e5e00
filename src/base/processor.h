#pragma once

namespace argosy {

/// What the processor has, and the system lets programs use; asked once. All false on other processors than x86-64.
struct Processor {
  bool avx2 = false;
  bool f16c = false;
  bool pclmul = false;  // with SSE 4.1
};

const Processor& processor();

}  // namespace argosy
