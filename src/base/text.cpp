#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
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

namespace {

/// Bytes of the well-formed UTF-8 character that begins the text; 0 if none does.
size_t utf8_character(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t size = byte(0) < 0x80   ? 1
                : byte(0) < 0xC2 ? 0
                : byte(0) < 0xE0 ? 2
                : byte(0) < 0xF0 ? 3
                : byte(0) < 0xF5 ? 4
                                 : 0;
  if (size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond Unicode.
  if ((byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) >= 0xA0)) return 0;
  if ((byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) >= 0x90)) return 0;
  return size;
}

}  // namespace

std::string quoted(std::string_view text, size_t max_length) {
  std::string result = "\"";
  size_t at = 0;
  while (at < text.size()) {
    char c = text[at];
    auto byte = static_cast<unsigned char>(c);
    size_t size = utf8_character(text.substr(at, 4));
    if (at + std::max<size_t>(size, 1) > max_length) break;
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f || size == 0) {
      result += format("\\x{:02x}", byte);
    } else {
      result += text.substr(at, size);
    }
    at += std::max<size_t>(size, 1);
  }
  if (at < text.size()) result += format("… ({} bytes)", text.size());
  return result + '"';
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    size_t size = utf8_character(text.substr(0, 4));
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool is_registered_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  constexpr size_t kMostLetters = 64;
  return !text.empty() && text.size() <= kMostLetters && text.find_first_not_of(kLetters) == std::string_view::npos &&
         (text[0] < '0' || text[0] > '9');
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string first_names(const std::vector<std::string>& names, size_t shown) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < names.size() && i < shown; ++i) parts.push_back(quoted(names[i]));
  std::string text = join(parts, ", ");
  if (names.size() > shown) text += format(" and {} more", names.size() - shown);
  return text;
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace argosy
