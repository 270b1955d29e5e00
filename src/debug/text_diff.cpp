#include "debug/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/text.h"

namespace argosy {
namespace {

constexpr size_t kContext = 3;
constexpr size_t kMaxCells = size_t{16} << 20;  // of the table of common subsequences

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

struct Edit {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

/// Edits between two blocks of lines by their longest common subsequence.
void diff_block(std::span<const std::string_view> a, std::span<const std::string_view> b, std::vector<Edit>& edits) {
  size_t width = b.size() + 1;
  if ((a.size() + 1) * width > kMaxCells) {
    for (std::string_view line : a) edits.push_back({'-', line});
    for (std::string_view line : b) edits.push_back({'+', line});
    return;
  }
  // common[i * width + j]: length of the longest common subsequence of a[i…] and b[j…].
  std::vector<uint32_t> common((a.size() + 1) * width, 0);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i * width + j] = a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                                           : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      edits.push_back({' ', a[i]});
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      edits.push_back({'-', a[i++]});
    } else {
      edits.push_back({'+', b[j++]});
    }
  }
}

std::vector<Edit> diff_lines(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  size_t head = 0, tail = 0, shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({' ', a[i]});
  diff_block(std::span(a).subspan(head, a.size() - head - tail), std::span(b).subspan(head, b.size() - head - tail),
             edits);
  for (size_t i = a.size() - tail; i < a.size(); ++i) edits.push_back({' ', a[i]});
  return edits;
}

/// "12,3" of a hunk's header; an empty side starts one line earlier, as diff -u has it.
std::string hunk_range(size_t start, size_t count) {
  size_t first = count == 0 ? start : start + 1;
  return count == 1 ? std::to_string(first) : format("{},{}", first, count);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view before_name,
                         std::string_view after_name) {
  if (before == after) return "";
  std::vector<Edit> edits = diff_lines(lines_of(before), lines_of(after));
  std::string text = format("--- {}\n+++ {}\n", before_name, after_name);
  size_t a_line = 0, b_line = 0, position = 0;
  bool has_hunk = false;
  while (position < edits.size()) {
    size_t change = position;
    while (change < edits.size() && edits[change].mark == ' ') ++change;
    if (change == edits.size()) break;
    size_t begin = change - std::min(change - position, kContext);
    // The hunk goes on until more unchanged lines follow than two contexts hold.
    size_t end = change, unchanged = 0;
    while (end < edits.size() && unchanged <= 2 * kContext) unchanged = edits[end++].mark == ' ' ? unchanged + 1 : 0;
    end -= unchanged - std::min(unchanged, kContext);
    a_line += begin - position, b_line += begin - position;
    size_t a_count = 0, b_count = 0;
    std::string body;
    for (size_t i = begin; i < end; ++i) {
      a_count += edits[i].mark != '+';
      b_count += edits[i].mark != '-';
      body += edits[i].mark;
      body.append(edits[i].line).append("\n");
    }
    text += format("@@ -{} +{} @@\n{}", hunk_range(a_line, a_count), hunk_range(b_line, b_count), body);
    a_line += a_count, b_line += b_count;
    position = end;
    has_hunk = true;
  }
  // Same lines, but one text does not end in a line feed.
  if (!has_hunk) text += "\\ only the line feed at the end of the text differs\n";
  return text;
}

}  // namespace argosy
