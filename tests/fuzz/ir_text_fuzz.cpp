// Any bytes as IR text: refused or read. What is read can be verified and printed; what is in order also reads back to
// the same program and prints to the same text.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ir/text.h"
#include "ir/verify.h"

namespace {

void require(bool condition, const std::string& message) {
  if (condition) return;
  std::fputs(message.c_str(), stderr);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  Result<Program> program = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!program) return 0;
  bool is_in_order = verify(*program).errors.empty();
  std::string text = print(*program);
  if (!is_in_order) return 0;
  Result<Program> again = parse(text);
  require(again.has_value(), again ? "" : to_text(again.error()) + text);
  std::optional<std::string> found = difference(*program, *again);
  require(!found, found.value_or("") + "\n" + text);
  require(print(*again) == text, "printed differently:\n" + text + "----\n" + print(*again));
  return 0;
}
