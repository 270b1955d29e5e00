#include "warnings.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace argosy::cli {
namespace {

/// Names and numbers have one of these in them: model.layers.3, decode_1, "a b", 4.5.
bool is_name(std::string_view word) {
  if (word.find_first_of("0123456789_/\"") != std::string_view::npos) return true;
  const size_t dot = word.find('.');
  return dot != std::string_view::npos && dot + 1 < word.size();
}

/// The text without what is quoted, names and numbers.
std::string words_of(std::string_view text) {
  std::string words, word;
  bool is_quoted = false;
  auto end_word = [&] {
    if (!is_name(word))
      words += word + ' ';
    else if (!words.ends_with("* "))  // lists of names may be of any length
      words += "* ";
    word.clear();
  };
  for (char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ' ' && !is_quoted)
      end_word();
    else
      word += c;
  }
  end_word();
  return words;
}

}  // namespace

void Warnings::add(std::string_view text) {
  std::string words = words_of(text);
  auto kind = std::ranges::find(kinds_, words, &Kind::words);
  if (kind == kinds_.end()) {
    kinds_.push_back({std::move(words), {std::string(text)}});
  } else if (std::ranges::find(kind->texts, text) == kind->texts.end()) {
    kind->texts.emplace_back(text);
  }
}

std::vector<std::string> Warnings::take() {
  std::vector<std::string> warnings;
  for (const Kind& kind : kinds_) {
    const size_t others = kind.texts.size() - 1;
    std::string text = kind.texts[0];
    if (others > 0) text += format(" (and {} more like it; --log-level info shows them)", others);
    warnings.push_back(std::move(text));
  }
  kinds_.clear();
  return warnings;
}

}  // namespace argosy::cli
