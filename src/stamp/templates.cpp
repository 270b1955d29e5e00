#include "stamp/templates.h"

#include <algorithm>

#include "base/text.h"

namespace argosy::stamp {
namespace {

/// The result as the graph describes it, without its name.
bool same_description(const Graph& graph, uint32_t one, uint32_t other) {
  const Value &a = graph.values[one], &b = graph.values[other];
  return a.table == b.table && a.meta == b.meta && a.size == b.size;
}

void keep_common(std::vector<Reference>& ways, const std::vector<Reference>& others) {
  std::erase_if(ways, [&](const Reference& way) { return std::ranges::find(others, way) == others.end(); });
}

/// What keeps two nodes from being one row; empty if nothing does.
std::string join(const Graph& graph, Row& row, const Row& other, int64_t layers_between) {
  const Node &a = *row.node, &b = *other.node;
  if (a.text != b.text) return "they compute different things";
  if (a.mentions.size() != b.mentions.size() || a.results.size() != b.results.size()) return "they have other values";
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (!same_description(graph, a.results[i], b.results[i])) return "their results have other shapes";
    if (row.roots[i].empty() != other.roots[i].empty()) return "their results share memory in other ways";
    bool had_any = !row.roots[i].empty();
    keep_common(row.roots[i], other.roots[i]);
    if (had_any && row.roots[i].empty()) return "their results share memory in other ways";
  }
  for (size_t i = 0; i < row.mentions.size(); ++i) {
    keep_common(row.mentions[i], other.mentions[i]);
    if (row.mentions[i].empty())
      return format("they read values of other places, such as {}", graph.values[b.mentions[i]].name);
  }
  row.is_shared = true;
  const Location &x = a.location, &y = b.location;
  if (x.file != y.file || x.line != y.line || x.class_name != y.class_name || row.module != other.module ||
      row.in_layer != other.in_layer || a.has_location != b.has_location) {
    return "they come from other lines";
  }
  if (row.calls_count || x.call != y.call) {
    if (y.call - x.call != layers_between) return "their modules are called at other times";
    row.calls_count = true;
  }
  return {};
}

std::string place(const Stack& stack, Home home, const Row& row) {
  const Location& at = row.node->location;
  return format("{}.{} ({}:{})", stack.prefix, home.layer, at.file, at.line);
}

}  // namespace

std::vector<uint32_t> depths_of(const std::vector<Stack>& stacks) {
  std::vector<uint32_t> depths;
  for (const Stack& stack : stacks) depths.push_back(static_cast<uint32_t>(stack.kinds.size()));
  return depths;
}

std::vector<Row> describe(const Graph& graph, const Layers& layers, const std::vector<Stack>& stacks, Home home) {
  std::vector<uint32_t> depths = depths_of(stacks);
  std::vector<Row> rows;
  for (uint32_t index : layers.block(home)) {
    const Node& node = graph.nodes[index];
    Row row{.node = &node, .module = node.location.module};
    if (!home.is_glue()) {
      if (auto path = split_at(row.module, stacks[home.stack].prefix)) {
        row.module = path->rest;
        row.in_layer = true;
      }
    }
    for (uint32_t value : node.mentions) row.mentions.push_back(references(graph, layers, depths, value, home));
    for (uint32_t value : node.results) {
      uint32_t root = graph.values[value].root;
      row.roots.push_back(root == kNone ? std::vector<Reference>{} : references(graph, layers, depths, root, home));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::map<RowsKey, std::vector<Row>>> learn(const Graph& graph, const Layers& layers,
                                                  const std::vector<Stack>& stacks) {
  std::map<RowsKey, std::vector<Row>> learned;
  std::map<RowsKey, uint32_t> seen;  // the layer that the rows are of
  for (uint32_t index = 0; index < stacks.size(); ++index) {
    const Stack& stack = stacks[index];
    for (uint32_t layer = 0; layer < stack.kinds.size(); ++layer) {
      Home home{index, layer};
      RowsKey key{index, stack.kinds[layer], layer == 0};
      std::vector<Row> rows = describe(graph, layers, stacks, home);
      auto [known, is_new] = learned.try_emplace(key, rows);
      if (is_new) {
        seen[key] = layer;
        continue;
      }
      if (known->second.size() != rows.size()) {
        return fail(ErrorCode::kUnsupportedFeature, format("layers {} and {} of {} have {} and {} nodes", seen[key],
                                                           layer, stack.prefix, known->second.size(), rows.size()));
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        std::string problem = join(graph, known->second[i], rows[i], layer - seen[key]);
        if (!problem.empty()) {
          return fail(ErrorCode::kUnsupportedFeature, format("layers {} and {} are not alike: {} at {}", seen[key],
                                                             layer, problem, place(stack, home, rows[i])));
        }
      }
    }
  }
  return learned;
}

}  // namespace argosy::stamp
