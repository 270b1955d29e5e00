#include "base/check.h"

#include "base/text.h"

namespace argosy {

void throw_internal_error(std::string_view condition, const char* file, int line, const std::string& detail) {
  std::string_view path = file;
  std::string_view name = path.substr(path.rfind('/') + 1);
  throw InternalError(format("{} ({} does not hold at {}:{})", detail, condition, name, line));
}

}  // namespace argosy
