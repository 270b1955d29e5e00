#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "inspect/graph_report.h"

namespace argosy {
namespace {

constexpr size_t kMaxWords = 32;  // of a path
constexpr size_t kMaxParts = size_t{1} << 17;
constexpr size_t kMaxRanges = 12;

/// Where in the model a node is: its name without the last word after a '/'.
std::string_view place_of(std::string_view name) {
  size_t end = name.rfind('/');
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

class PartBuilder {
 public:
  explicit PartBuilder(const OnnxModel& model) : model_(model), graph_(model.graph) { parts_.emplace_back(); }

  std::vector<GraphPart> build() {
    std::string_view place;
    uint32_t part = 0;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      std::string_view own = place_of(graph_.nodes[i].name);
      if (own != place) part = part_of(own);
      place = own;
      parts_[part].items.push_back({false, i});
      parts_[part].nodes += 1;
    }
    number_contents();
    return std::move(parts_);
  }

 private:
  uint32_t part_of(std::string_view place) {
    uint32_t part = 0;
    size_t words = 0;
    for (size_t at = 0; at < place.size() && words < kMaxWords;) {
      size_t end = std::min(place.find_first_of("./", at), place.size());
      std::string_view word = place.substr(at, end - at);
      at = end + 1;
      if (word.empty()) continue;
      std::optional<uint32_t> inner = child(part, word);
      if (!inner) break;
      part = *inner;
      ++words;
    }
    return part;
  }

  std::optional<uint32_t> child(uint32_t part, std::string_view word) {
    std::string key = format("{}.{}", part, word);
    if (auto found = by_word_.find(key); found != by_word_.end()) return found->second;
    if (parts_.size() >= kMaxParts) return std::nullopt;
    auto index = static_cast<uint32_t>(parts_.size());
    by_word_.emplace(std::move(key), index);
    parts_[part].items.push_back({true, index});
    parts_.push_back({.name = std::string(word), .parent = part});
    return index;
  }

  /// What a node says of itself, apart from names: its op, its integers, and the types and sizes of its weights.
  void append_node(std::string& key, const OnnxNode& node) const {
    key += format("n{}", node.op);
    for (const auto& [name, value] : node.integers) key += format(" {}:{}={}", name.size(), name, value);
    for (uint32_t input : node.inputs) {
      if (input == OnnxNode::kNothing) {
        key += " -";
      } else if (uint32_t weight = weights_[input]; weight != OnnxNode::kNothing) {
        const OnnxInitializer& tensor = model_.initializers[weight];
        key += " " + tensor.type;
        for (int64_t dim : tensor.shape) key += format(",{}", dim);
      } else {
        key += " v";
      }
    }
    key += ';';
  }

  void number_contents() {
    weights_.assign(graph_.values.size(), OnnxNode::kNothing);
    for (uint32_t i = 0; i < graph_.initializers.size(); ++i) {
      if (graph_.initializers[i] != OnnxNode::kNothing) weights_[graph_.initializers[i]] = i;
    }
    std::unordered_map<std::string, uint32_t> numbers;  // looked up, never iterated
    // Parts come after the one that they are in.
    for (size_t i = parts_.size(); i-- > 0;) {
      GraphPart& part = parts_[i];
      std::string key;
      for (GraphPart::Item item : part.items) {
        if (item.is_part) {
          const GraphPart& inner = parts_[item.index];
          key += format("p{}:{} {};", inner.name.size(), inner.name, inner.contents);
          part.nodes += inner.nodes;
        } else {
          append_node(key, graph_.nodes[item.index]);
        }
      }
      part.contents = numbers.try_emplace(std::move(key), static_cast<uint32_t>(numbers.size())).first->second;
    }
  }

  const OnnxModel& model_;
  const OnnxGraph& graph_;
  std::vector<GraphPart> parts_;
  std::unordered_map<std::string, uint32_t> by_word_;  // looked up, never iterated
  std::vector<uint32_t> weights_;                      // by value: an index of initializers, or kNothing
};

}  // namespace

std::vector<GraphPart> graph_parts(const OnnxModel& model) { return PartBuilder(model).build(); }

std::string path_of(const std::vector<GraphPart>& parts, uint32_t part) {
  std::string path;
  for (; part != 0; part = parts[part].parent) path = path.empty() ? parts[part].name : parts[part].name + "." + path;
  return path;
}

bool is_numbered(const GraphPart& part) {
  const std::string& name = part.name;
  bool is_short = !name.empty() && name.size() <= 9 && (name[0] != '0' || name.size() == 1);
  return is_short && name.find_first_not_of("0123456789") == std::string::npos;
}

std::string ranges_text(const std::vector<uint64_t>& numbers) {
  std::vector<std::string> ranges;
  size_t listed = 0;
  while (listed < numbers.size() && ranges.size() < kMaxRanges) {
    size_t end = listed + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    ranges.push_back(end - listed == 1 ? std::to_string(numbers[listed])
                                       : format("{} to {}", numbers[listed], numbers[end - 1]));
    listed = end;
  }
  if (listed < numbers.size()) ranges.push_back(format("{} more", numbers.size() - listed));
  if (ranges.size() < 2) return join(ranges, "");
  std::string last = std::move(ranges.back());
  ranges.pop_back();
  return format("{} and {}", join(ranges, ", "), last);
}

std::vector<AlikeParts> alike_parts(const std::vector<GraphPart>& parts, uint32_t part) {
  std::vector<AlikeParts> groups;
  std::unordered_map<uint32_t, size_t> by_contents;  // looked up, never iterated
  for (GraphPart::Item item : parts[part].items) {
    if (!item.is_part || !is_numbered(parts[item.index])) continue;
    auto [group, is_new] = by_contents.try_emplace(parts[item.index].contents, groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].parts.push_back(item.index);
  }
  for (AlikeParts& group : groups) {
    std::vector<uint64_t> numbers;
    for (uint32_t each : group.parts) numbers.push_back(std::stoull(parts[each].name));
    std::ranges::sort(numbers);
    group.numbers = ranges_text(numbers);
  }
  return groups;
}

std::vector<uint32_t> layers_of_parts(const std::vector<GraphPart>& parts) {
  std::vector<uint32_t> layers(parts.size(), 0);
  for (uint32_t i = 1; i < parts.size(); ++i) {
    uint32_t outer = layers[parts[i].parent];
    layers[i] = outer != 0 ? outer : is_numbered(parts[i]) ? i : 0;
  }
  return layers;
}

}  // namespace argosy
