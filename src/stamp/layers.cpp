#include "stamp/layers.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace argosy::stamp {
namespace {

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What comes before the first number of a path; empty if there is none.
std::string_view list_of(std::string_view path) {
  for (size_t start = path.find('.'); start != std::string_view::npos; start = path.find('.', start + 1)) {
    std::string_view part = path.substr(start + 1);
    if (number(part.substr(0, part.find('.')))) return path.substr(0, start);
  }
  return {};
}

/// What runs between the layers belongs to the one that follows.
void give_homes(Graph& graph, const std::vector<Stack>& stacks) {
  for (Node& node : graph.nodes) {
    for (uint32_t stack = 0; stack < stacks.size(); ++stack) {
      if (auto path = split_at(node.location.module, stacks[stack].prefix)) node.home = {stack, path->layer};
    }
  }
  for (uint32_t stack = 0; stack < stacks.size(); ++stack) {
    auto is_own = [&](const Node& node) { return node.home.stack == stack; };
    auto first = std::ranges::find_if(graph.nodes, is_own);
    Home next;
    for (size_t i = graph.nodes.size(); i-- > static_cast<size_t>(first - graph.nodes.begin());) {
      Node& node = graph.nodes[i];
      if (is_own(node)) next = node.home;
      if (node.home.is_glue()) node.home = next;
    }
  }
}

Status check_order(const Graph& graph, const std::vector<Stack>& stacks) {
  Home last;
  std::vector<uint32_t> next(stacks.size(), 0);
  for (const Node& node : graph.nodes) {
    if (node.home == last) continue;
    if (!last.is_glue() && node.home.stack != last.stack) next[last.stack] = kNone;  // it has ended
    last = node.home;
    if (last.is_glue()) continue;
    const Stack& stack = stacks[last.stack];
    if (last.layer >= stack.kinds.size() || last.layer < next[last.stack]) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("the layers of {} do not run one after the other", quoted(stack.prefix)));
    }
    next[last.stack] = last.layer + 1;
  }
  return {};
}

/// Votes for lists of inputs and outputs that run along a stack.
class Votes {
 public:
  void add(std::string_view path, Home home) {
    std::string_view list = list_of(path);
    if (list.empty() || home.is_glue()) return;
    auto [stack, is_new] = stacks_.emplace(std::string(list), home.stack);
    if (stack->second != home.stack || split_at(path, list)->layer != home.layer) stack->second = kNone;
  }
  const std::map<std::string, uint32_t>& result() const { return stacks_; }

 private:
  std::map<std::string, uint32_t> stacks_;
};

}  // namespace

std::optional<LayerPath> split_at(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix) || path.size() <= prefix.size() || path[prefix.size()] != '.') return std::nullopt;
  std::string_view rest = path.substr(prefix.size() + 1);
  size_t dot = std::min(rest.find('.'), rest.size());
  std::optional<uint32_t> layer = number(rest.substr(0, dot));
  if (!layer) return std::nullopt;
  return LayerPath{std::string(prefix), kNone, *layer, std::string(rest.substr(std::min(dot + 1, rest.size())))};
}

Result<Layers> Layers::find(Graph& graph, const std::vector<Stack>& stacks) {
  give_homes(graph, stacks);
  ARGOSY_TRY_STATUS(check_order(graph, stacks));
  Layers layers;
  for (uint32_t stack = 0; stack < stacks.size(); ++stack) layers.lists_.emplace(stacks[stack].prefix, stack);
  Votes votes;
  for (const Node& node : graph.nodes) {
    for (uint32_t mention : node.mentions) {
      uint32_t input = graph.values[mention].input;
      if (input != kNone) votes.add(graph.inputs[input].path, node.home);
    }
  }
  for (const Output& output : graph.outputs) {
    if (output.value == kNone) continue;
    const Value& value = graph.values[output.value];
    if (value.node != kNone) votes.add(output.path, graph.nodes[value.node].home);
    if (value.input != kNone) {
      auto list = votes.result().find(std::string(list_of(graph.inputs[value.input].path)));
      if (list == votes.result().end() || list->second == kNone) continue;
      votes.add(output.path, {list->second, split_at(graph.inputs[value.input].path, list->first)->layer});
    }
  }
  for (const auto& [list, stack] : votes.result()) {
    if (stack != kNone) layers.lists_.emplace(list, stack);
  }
  layers.place_nodes(graph);
  return layers;
}

Layers Layers::along(const Layers& other, const Graph& graph) {
  Layers layers;
  layers.lists_ = other.lists_;
  layers.place_nodes(graph);
  return layers;
}

void Layers::place_nodes(const Graph& graph) {
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<uint32_t>& block = blocks_[graph.nodes[i].home];
    positions_.push_back(static_cast<uint32_t>(block.size()));
    block.push_back(i);
  }
}

std::optional<LayerPath> Layers::split(std::string_view path) const {
  for (const auto& [list, stack] : lists_) {
    if (auto found = split_at(path, list)) {
      found->stack = stack;
      return found;
    }
  }
  return std::nullopt;
}

const std::vector<uint32_t>& Layers::block(Home home) const {
  static const std::vector<uint32_t> kEmpty;
  auto found = blocks_.find(home);
  return found == blocks_.end() ? kEmpty : found->second;
}

}  // namespace argosy::stamp
