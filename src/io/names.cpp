#include "io/names.h"

namespace argosy {

bool is_plain_relative_path(std::string_view path) {
  if (path.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) return false;
  if (path.size() >= 2 && path[1] == ':') return false;
  while (true) {
    size_t separator = path.find('/');
    std::string_view part = path.substr(0, separator);
    if (part.empty() || part == "." || part == "..") return false;
    if (separator == std::string_view::npos) return true;
    path.remove_prefix(separator + 1);
  }
}

}  // namespace argosy
