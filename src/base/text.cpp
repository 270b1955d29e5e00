#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace argosy {

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return format("{} B", bytes);
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string quoted(std::string_view text, size_t max_length) {
  std::string result = "\"";
  for (char c : text.substr(0, max_length)) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  if (text.size() > max_length) result += format("… ({} bytes)", text.size());
  return result + '"';
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace argosy
