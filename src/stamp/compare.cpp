#include <algorithm>

#include "base/text.h"
#include "stamp/expression.h"
#include "stamp/graph.h"

namespace argosy::stamp {
namespace {

/// A graph line by line, in words that do not depend on names.
class Lines {
 public:
  explicit Lines(const Graph& graph) : graph_(graph), labels_(graph.values.size()) {
    for (size_t i = 0; i < graph.inputs.size(); ++i) labels_[graph.inputs[i].value] = format("in{}", i);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (size_t k = 0; k < node.results.size(); ++k) labels_[node.results[k]] = format("n{}.{}", i, k);
    }
    // Inputs' own symbols first: the order inside sums is that of their names.
    for (const Input& input : graph.inputs) {
      if (graph.values[input.value].meta.find("Add(") == std::string::npos)
        symbols_.renamed_in(graph.values[input.value].meta);
    }
  }

  std::vector<std::string> all() {
    std::vector<std::string> lines;
    for (const Input& input : graph_.inputs)
      lines.push_back(
          format("input {} {} {}", input.kind, input.path, filled(input.spec, {input.value}) + about(input.value)));
    for (const Node& node : graph_.nodes) {
      std::string line = filled(node.text, node.mentions);
      for (uint32_t value : node.results) line += about(value);
      const Location& at = node.location;
      lines.push_back(format("{} at {}:{} {} {} {}", line, at.file, at.line, at.module, at.class_name, at.call));
    }
    for (const Output& output : graph_.outputs)
      lines.push_back(format("output {} {}", output.path, filled(output.spec, {output.value})));
    return lines;
  }

 private:
  std::string about(uint32_t value) {
    const Value& it = graph_.values[value];
    return format(" {} {} {}", it.table, symbols_.renamed_in(it.meta), it.root == kNone ? "" : labels_[it.root]);
  }

  std::string filled(const std::string& text, const std::vector<uint32_t>& mentions) {
    std::string out;
    size_t next = 0;
    for (char c : text) {
      if (c == kMention) {
        uint32_t value = mentions[next++];
        const std::string& size = graph_.values[value].size;
        out += size.empty() ? labels_[value] : symbols_.renamed(size);
      } else if (c != kOwnName && c != kOwnPath) {
        out += c;
      }
    }
    return out;
  }

  const Graph& graph_;
  std::vector<std::string> labels_;
  Symbols symbols_;
};

}  // namespace

std::string difference(const Graph& one, const Graph& other) {
  std::vector<std::string> a = Lines(one).all(), b = Lines(other).all();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) return format("line {}: {}\nand:     {}", i, a[i], b[i]);
  }
  if (a.size() != b.size()) return format("{} lines and {}", a.size(), b.size());
  return {};
}

}  // namespace argosy::stamp
