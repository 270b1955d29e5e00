#include "base/counts.h"

#include "base/text.h"

namespace argosy {

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string count_of(uint64_t count, std::string_view singular) {
  return format("{} {}{}", format_count(count), singular, count == 1 ? "" : "s");
}

}  // namespace argosy
