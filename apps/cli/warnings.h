#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::cli {

/// Warnings that come one after the other, those of one kind as one: the first of them, and how many others there are.
/// Of one kind are texts that differ in names and numbers alone.
class Warnings {
 public:
  void add(std::string_view text);
  /// A line for each kind, in the order in which they came. There are none afterwards.
  std::vector<std::string> take();

 private:
  struct Kind {
    std::string words;
    std::vector<std::string> texts;  // that differ
  };
  std::vector<Kind> kinds_;
};

}  // namespace argosy::cli
