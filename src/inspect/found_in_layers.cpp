#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "inspect/graph_report.h"

namespace argosy {
namespace {

/// The same text for what reads the same.
std::string found_text(const FoundStructure& found) {
  return format("{} {}\n{}\n", static_cast<int>(found.kind), found.what, found.why);
}

std::string found_text(const std::vector<FoundCount>& counts) {
  std::string text;
  for (const FoundCount& each : counts) text += format("{} {}", each.count, found_text(each.first));
  return text;
}

}  // namespace

std::vector<FoundInLayers> found_in_layers(const std::vector<GraphPart>& parts, const OnnxModel& model,
                                           const std::vector<FoundStructure>& found) {
  std::vector<uint32_t> layers = layers_of_parts(parts);
  std::vector<uint32_t> layer_of_node(model.graph.nodes.size(), 0);
  uint64_t outside = model.graph.nodes.size();
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (i != 0 && layers[i] == i) outside -= parts[i].nodes;
    for (GraphPart::Item item : parts[i].items) {
      if (!item.is_part) layer_of_node[item.index] = layers[i];
    }
  }
  std::map<uint32_t, std::vector<FoundCount>> by_layer = {{0, {}}};
  for (uint32_t i = 1; i < parts.size(); ++i) {
    if (layers[i] == i) by_layer[i];
  }
  std::unordered_map<std::string, size_t> places;  // in the counts of a layer; looked up, never iterated
  for (const FoundStructure& each : found) {
    uint32_t layer = layer_of_node[each.node];
    std::vector<FoundCount>& counts = by_layer[layer];
    auto place = places.try_emplace(format("{} {}", layer, found_text(each)), counts.size()).first;
    if (place->second == counts.size()) counts.push_back({each, 0});
    ++counts[place->second].count;
  }

  std::vector<FoundInLayers> rows;
  std::vector<std::pair<uint32_t, std::vector<uint64_t>>>
      members;  // of each row: the part around its layers, their numbers
  std::map<std::pair<uint32_t, std::string>, size_t> row_of;
  for (auto& [layer, counts] : by_layer) {
    std::ranges::sort(counts, {}, [](const FoundCount& each) { return std::pair(each.first.kind, each.first.node); });
    if (layer == 0) continue;
    uint32_t list = parts[layer].parent;
    auto [row, is_new] = row_of.try_emplace({list, found_text(counts)}, rows.size());
    if (is_new) {
      rows.push_back({.found = counts});
      members.push_back({list, {}});
    }
    rows[row->second].layers += 1;
    rows[row->second].nodes += parts[layer].nodes;
    members[row->second].second.push_back(std::stoull(parts[layer].name));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& [list, numbers] = members[i];
    std::ranges::sort(numbers);
    std::string path = path_of(parts, list);
    rows[i].place = path.empty() ? ranges_text(numbers) : format("{} {}", path, ranges_text(numbers));
  }
  if (outside > 0) rows.push_back({.place = "", .layers = 0, .nodes = outside, .found = std::move(by_layer[0])});
  return rows;
}

GraphReport report_graph(const OnnxModel& model) {
  GraphReport report;
  report.parts = graph_parts(model);
  report.found = find_structures(model);
  report.layers = found_in_layers(report.parts, model, report.found);
  report.states = cache_states(model);
  report.caches = cache_totals(report.states);
  return report;
}

}  // namespace argosy
