#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argosy::engines {

/// A model card that others wrote. Of the YAML between its first two "---" lines only `key: value` and lists of values
/// are understood; what else is there (maps, anchors, tags, texts of several lines) is left out, so that a hostile head
/// gives plain texts or nothing.
struct SourceCard {
  struct Entry {
    std::string key;
    std::vector<std::string> values;  // UTF-8 of one line each, without quotes
  };
  std::vector<Entry> head;
  std::string body;  // what follows the head, unchanged

  /// Of the first entry of that name; empty if there is none.
  const std::vector<std::string>& values(std::string_view key) const;
};

SourceCard read_source_card(std::string_view text);

/// A text as YAML reads it back: plain where that is safe, else in quotes.
std::string yaml_scalar(std::string_view text);

/// `key: value` and a line feed, or a list; nothing if there are no values.
std::string yaml_entry(std::string_view key, const std::vector<std::string>& values);

}  // namespace argosy::engines
