#include "engines/card_head.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "io/json.h"

namespace argosy::engines {
namespace {

constexpr std::string_view kFence = "---", kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kMaxEntries = 200, kMaxValues = 200, kMaxValue = 300;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

/// Takes the first line off `text`.
std::string_view take_line(std::string_view& text) {
  size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// One value; nullopt if it is more than a plain or quoted text.
std::optional<std::string> scalar(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text.size() > kMaxValue || !is_utf8(text)) return std::nullopt;
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }))
    return std::nullopt;
  char first = text.front();
  if (first == '"' || first == '\'') {
    if (text.size() < 2 || text.back() != first) return std::nullopt;
    std::string_view inside = text.substr(1, text.size() - 2);
    if (inside.find(first) != std::string_view::npos || inside.find('\\') != std::string_view::npos)
      return std::nullopt;
    return std::string(inside);
  }
  if (size_t comment = text.find(" #"); comment != std::string_view::npos) text = trimmed(text.substr(0, comment));
  constexpr std::string_view kSpecial = "&*!|>%@`{}[],?#:-";
  if (text.empty() || kSpecial.find(first) != std::string_view::npos) return std::nullopt;
  if (text.find(": ") != std::string_view::npos || text.ends_with(':')) return std::nullopt;
  return std::string(text);
}

/// "[a, b]"; nullopt if an item is no plain value.
std::optional<std::vector<std::string>> flow_list(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::string> values;
  while (!trimmed(text).empty() && values.size() < kMaxValues) {
    size_t comma = text.find(',');
    std::optional<std::string> value = scalar(text.substr(0, comma));
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return values;
}

/// "key:" at the start of a line; empty if it is none.
std::string_view key_of(std::string_view line) {
  size_t end = 0;
  while (end < line.size() && (is_letter(line[end]) || is_digit(line[end]) || line[end] == '_' || line[end] == '-'))
    ++end;
  if (end == 0 || end == line.size() || line[end] != ':' || !is_letter(line[0])) return "";
  if (end + 1 < line.size() && trimmed(line.substr(end + 1, 1)) != "") return "";
  return line.substr(0, end);
}

/// Whether a line belongs to the entry above it.
bool continues(std::string_view line) {
  return line.starts_with(' ') || line.starts_with('\t') || line.starts_with("- ") || trimmed(line) == "-";
}

/// The values of an entry: behind its key, else in the lines below it. nullopt: it is something else.
std::optional<std::vector<std::string>> entry_values(std::string_view behind,
                                                     const std::vector<std::string_view>& below) {
  behind = trimmed(behind);
  if (behind.starts_with('#')) behind = "";
  if (!behind.empty()) {
    if (!below.empty()) return std::nullopt;  // a text that goes on
    if (behind.starts_with('[')) return flow_list(behind);
    std::optional<std::string> value = scalar(behind);
    return value ? std::optional(std::vector{std::move(*value)}) : std::nullopt;
  }
  std::vector<std::string> values;
  for (std::string_view line : below) {
    line = trimmed(line);
    std::optional<std::string> value = line.starts_with("- ") ? scalar(line.substr(2)) : std::nullopt;
    if (!value || values.size() == kMaxValues) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

std::vector<SourceCard::Entry> read_head(std::string_view head) {
  std::vector<SourceCard::Entry> entries;
  while (!head.empty() && entries.size() < kMaxEntries) {
    std::string_view line = take_line(head);
    std::string_view key = key_of(line);
    if (key.empty()) continue;
    std::vector<std::string_view> below;
    while (!head.empty()) {
      std::string_view rest = head;
      std::string_view next = take_line(rest);
      bool is_empty = trimmed(next).empty() || trimmed(next).starts_with('#');
      if (!is_empty && !continues(next)) break;
      if (!is_empty) below.push_back(next);
      head = rest;
    }
    if (auto values = entry_values(line.substr(key.size() + 1), below); values && !values->empty())
      entries.push_back({std::string(key), std::move(*values)});
  }
  return entries;
}

/// Whether YAML would take a plain text for something else: "no" is false, "1.0" a number.
bool reads_as_text(std::string_view text) {
  if (text.empty() || !is_letter(text.front()) || text.back() == ' ') return false;
  auto is_plain = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view(" ._/+-").find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(text, is_plain)) return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"};
  return std::ranges::find(kWords, lower) == std::end(kWords);
}

}  // namespace

const std::vector<std::string>& SourceCard::values(std::string_view key) const {
  static const std::vector<std::string> none;
  auto found = std::ranges::find(head, key, &Entry::key);
  return found == head.end() ? none : found->values;
}

SourceCard read_source_card(std::string_view text) {
  SourceCard card;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string_view rest = text;
  if (trimmed(take_line(rest)) == kFence) {
    std::string_view after = rest;
    while (!after.empty()) {
      size_t before = rest.size() - after.size();
      if (trimmed(take_line(after)) != kFence) continue;
      card.head = read_head(rest.substr(0, before));
      card.body = after;
      return card;
    }
  }
  card.body = text;
  return card;
}

std::string yaml_scalar(std::string_view text) {
  return reads_as_text(text) ? std::string(text) : JsonWriter().value(text).take();
}

std::string yaml_entry(std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return "";
  if (values.size() == 1) return format("{}: {}\n", key, yaml_scalar(values[0]));
  std::string entry = format("{}:\n", key);
  for (const std::string& value : values) entry += format("- {}\n", yaml_scalar(value));
  return entry;
}

}  // namespace argosy::engines
