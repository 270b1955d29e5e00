#include <algorithm>
#include <map>

#include "base/text.h"
#include "inspect/graph_html.h"
#include "inspect_format.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr size_t kMaxNamed = 6;  // ports and ops of a line
constexpr size_t kMaxRows = 4;   // of each kind

/// The first few, and how many there are besides.
std::string some_of(const std::vector<std::string>& texts, size_t further, std::string_view of_what) {
  std::vector<std::string> shown(texts.begin(),
                                 texts.begin() + static_cast<ptrdiff_t>(std::min(texts.size(), kMaxNamed)));
  further += texts.size() - shown.size();
  if (further > 0) shown.push_back(count_of(further, of_what));
  return join(shown, ", ");
}

/// Inputs or outputs that are no states by name and type, and how many states there are.
std::string ports_text(const std::vector<OnnxValue>& values, const std::vector<bool>& is_state,
                       std::string_view state) {
  std::vector<std::string> ports;
  size_t states = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_state[i])
      ++states;
    else
      ports.push_back(format("{} {}", values[i].name, argosy::type_text(values[i])));
  }
  std::string text = some_of(ports, 0, "other");
  if (states == 0) return text.empty() ? "none" : text;
  return format("{}{}{}", text, text.empty() ? "" : ", ", count_of(states, state));
}

/// Lists of layers, and which of them hold the same.
void add_layers(Explanation& lines, const std::vector<GraphPart>& parts) {
  std::vector<uint32_t> layers = layers_of_parts(parts);
  size_t rows = 0;
  for (uint32_t list = 0; list < parts.size() && rows < kMaxRows; ++list) {
    if (layers[list] != 0) continue;
    for (const AlikeParts& alike : alike_parts(parts, list)) {
      if (rows == kMaxRows) {
        lines.add({"", "and others"});
        break;
      }
      std::string nodes = count_of(parts[alike.parts[0]].nodes, "node");
      lines.add({rows++ == 0 ? "layers" : "", format("{} {}: {}{}", path_of(parts, list), alike.numbers,
                                                     alike.parts.size() > 1 ? "the same " : "", nodes)});
    }
  }
  if (rows == 0) lines.add({"layers", "none, by the names of nodes"});
}

/// The same structure in several places.
struct FoundEverywhere {
  FoundStructure found;
  uint64_t count = 0;
  std::vector<std::string> places;  // layers
  bool is_outside = false;          // also outside of layers

  std::string where() const {
    if (places.empty()) return "outside of layers";
    return format("in {}{}", some_of(places, 0, "other place"), is_outside ? " and outside of layers" : "");
  }
};

std::vector<FoundEverywhere> found_everywhere(const GraphReport& graph) {
  std::vector<FoundEverywhere> all;
  std::map<std::string, size_t> by_text;
  for (const FoundInLayers& layers : graph.layers) {
    for (const FoundCount& each : layers.found) {
      const FoundStructure& first = each.first;
      std::string key = format("{} {}\n{}", static_cast<int>(first.kind), first.what, first.why);
      auto [place, is_new] = by_text.try_emplace(std::move(key), all.size());
      if (is_new) all.push_back({.found = first});
      all[place->second].count += each.count * std::max<uint64_t>(layers.layers, 1);
      if (layers.layers == 0)
        all[place->second].is_outside = true;
      else
        all[place->second].places.push_back(layers.place);
    }
  }
  return all;
}

void add_found(Explanation& lines, const std::vector<FoundEverywhere>& all, StructureKind kind,
               std::string_view label) {
  size_t rows = 0, further = 0;
  auto is_of_kind = [&](const FoundEverywhere& each) { return each.found.kind == kind; };
  bool has_several = std::ranges::count_if(all, is_of_kind) > 1;
  for (const FoundEverywhere& each : all) {
    if (!is_of_kind(each)) continue;
    if (rows == kMaxRows) {
      ++further;
      continue;
    }
    std::string text = format("{} × {}", format_count(each.count), each.found.what);
    if (!each.found.is_op) text += ", written out";
    if (!each.found.is_op || has_several) text += " " + each.where();
    lines.add({rows++ == 0 ? std::string(label) : "", std::move(text)});
    if (!each.found.is_op)
      lines.add({"", each.found.why.empty() ? "why: the graph does not show it" : "why: " + each.found.why});
  }
  if (rows == 0) lines.add({std::string(label), "none found"});
  if (further > 0) lines.add({"", count_of(further, "other kind")});
}

void add_caches(Explanation& lines, const GraphReport& graph) {
  if (graph.states.empty()) return lines.add({"caches", "none, by the names of inputs and outputs"});
  size_t rows = 0;
  for (const CacheTotal& total : graph.caches) {
    if (rows == kMaxRows) break;
    std::string text = count_of(total.states, "state");
    if (!total.is_known) {
      text += " of sizes that dims do not tell";
    } else if (total.dim.empty()) {
      text += format(" of fixed size, {}", format_bytes(total.bytes));
    } else {
      std::vector<std::string> sizes;
      for (uint64_t tokens : kReportedTokens) {
        std::optional<uint64_t> bytes = total.bytes_at(tokens);
        sizes.push_back(format("{} at {}", bytes ? format_bytes(*bytes) : "too much", format_count(tokens)));
      }
      text += format(", {} a token ({}): {} tokens", count_of(total.bytes, "byte"), total.dim, join(sizes, ", "));
    }
    lines.add({rows++ == 0 ? "caches" : "", std::move(text)});
  }
}

}  // namespace

Explanation onnx_explanation(const std::string& path, const OnnxReport& report) {
  const OnnxModel& model = report.model;
  GraphReport graph = report_graph(model);
  uint64_t bytes = 0;
  for (const DTypeTotal& total : report.totals) bytes += total.bytes;
  Explanation lines(format("{}: {}, {}, {} of weights", printable(path), describe(InputKind::kOnnx),
                           count_of(model.graph.nodes.size(), "node"), format_bytes(bytes)));
  std::vector<std::string> opsets, ops, weights, largest;
  for (const auto& [domain, version] : model.opset_imports)
    opsets.push_back(format("{} {}", domain.empty() ? "ai.onnx" : domain, version));
  lines.add({"opsets", some_of(opsets, 0, "other")});
  std::vector<bool> is_past(model.inputs.size()), is_present(model.outputs.size());
  for (const CacheState& state : graph.states) {
    if (state.input) is_past[*state.input] = true;
    if (state.output) is_present[*state.output] = true;
  }
  lines.add({"inputs", ports_text(model.inputs, is_past, "past state")});
  lines.add({"outputs", ports_text(model.outputs, is_present, "present state")});
  for (const OnnxOpCount& op : model.ops)
    ops.push_back(format("{} {}", format_count(op.count), onnx_op_name(op.domain, op.op_type)));
  lines.add({"ops", some_of(ops, 0, "other op")});
  add_layers(lines, graph.parts);
  std::vector<FoundEverywhere> all = found_everywhere(graph);
  add_found(lines, all, StructureKind::kAttention, "attention");
  add_found(lines, all, StructureKind::kNorm, "norms");
  add_found(lines, all, StructureKind::kRotary, "rotary");
  std::vector<DTypeTotal> totals = report.totals;
  std::ranges::sort(totals, std::greater{}, [](const DTypeTotal& each) { return std::pair(each.bytes, each.dtype); });
  for (const DTypeTotal& total : totals)
    weights.push_back(
        format("{} {} in {}", format_bytes(total.bytes), to_text(total.dtype), count_of(total.tensors, "tensor")));
  lines.add({"weights", weights.empty() ? "none" : some_of(weights, 0, "other dtype")});
  for (size_t i = 0; i < std::min<size_t>(report.by_size.size(), 2); ++i) {
    const OnnxInitializer& tensor = model.initializers[report.by_size[i]];
    largest.push_back(format("{} {}, {}", tensor.name, argosy::type_text(tensor), format_bytes(tensor.bytes)));
  }
  if (!largest.empty()) lines.add({"largest", join(largest, "; ")});
  add_caches(lines, graph);
  for (size_t i = 0; i < std::min(report.warnings.size(), kMaxRows); ++i) lines.add({"warning", report.warnings[i]});
  return lines;
}

}  // namespace argosy::cli
