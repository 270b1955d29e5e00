// Any bytes as graph JSON: refused with an error, or a component that prints and reads back as the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "frontends/pt2/graph_json_testing.h"
#include "ir/text.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  Result<Program> program = read_test_program(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!program) return 0;
  if (!verify(*program).errors.empty()) return 0;
  Result<Program> parsed = parse(print(*program));
  ARGOSY_CHECK(parsed.has_value(), "a verified program does not read back: " + to_text(parsed.error()));
  std::optional<std::string> found = difference(*program, *parsed);
  ARGOSY_CHECK(!found, "a verified program reads back as another: " + found.value_or(""));
  return 0;
}
