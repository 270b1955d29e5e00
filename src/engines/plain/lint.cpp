// Bundles for any runtime: graphs and the manifest that says how they are wired.

#include <algorithm>

#include "engines/lint_rule.h"

namespace argosy::engines {
namespace {

constexpr std::string_view kManifest = "bundle.json";

std::string_view text_of(JsonView value) { return value.as_string().value_or(""); }

std::string_view port_name(JsonView port) {
  std::string_view path = text_of(port.find("path"));
  return path.empty() ? text_of(port.find("name")) : path;
}

JsonView component_of(const LintedBundle& bundle, std::string_view name) {
  for (JsonView component : bundle.json(kManifest).find("components").items()) {
    if (text_of(component.find("name")) == name) return component;
  }
  return {};
}

void check_ports(const LintedBundle& bundle, const FindingSink& found) {
  for (JsonView row : bundle.json(kManifest).find("graphs").items()) {
    const LintedGraph* graph = bundle.graph(text_of(row.find("file")));
    JsonView component = component_of(bundle, text_of(row.find("component")));
    if (graph == nullptr || !graph->model || !component.is_valid()) continue;
    std::vector<std::string> lacking;
    auto look = [&](JsonView ports, bool is_input) {
      auto has = [&](std::string_view name) {
        return (is_input ? graph->input(name) : graph->output(name)) != nullptr;
      };
      for (JsonView port : ports.items()) {
        std::string_view name = port_name(port), renamed = text_of(row.find("renamed").find(name));
        if (!has(renamed.empty() ? name : renamed) && !has(text_of(port.find("name")))) lacking.emplace_back(name);
      }
    };
    look(component.find("inputs"), true);
    look(component.find("outputs"), false);
    if (!lacking.empty()) found.add(graph->file, format("bundle.json says that it has {}", some_of(lacking)));
  }
}

void check_wiring(const LintedBundle& bundle, const FindingSink& found) {
  std::vector<std::string> unknown;
  auto look = [&](std::string_view end, std::string_view ports) {
    size_t dot = std::min(end.find('.'), end.size());
    JsonView list = component_of(bundle, end.substr(0, dot)).find(ports);
    std::string_view wanted = end.substr(std::min(dot + 1, end.size()));
    for (JsonView port : list.items()) {
      if (port_name(port) == wanted) return;
    }
    unknown.emplace_back(end);
  };
  for (JsonView wire : bundle.json(kManifest).find("wiring").items()) {
    look(text_of(wire.find("from")), "outputs");
    look(text_of(wire.find("to")), "inputs");
  }
  if (!unknown.empty()) found.add(kManifest, format("its wiring names {}, which no component has", some_of(unknown)));
}

constexpr LintRule kPlainRules[] = {
    {"plain-port-missing", kLintError, "an input or output that bundle.json describes and the graph does not have",
     "keep graphs and bundle.json of one export together", check_ports},
    {"plain-wiring", kLintError, "a wire of bundle.json from or to a port that no component has", "export again",
     check_wiring},
};

}  // namespace

std::span<const LintRule> lint_plain_rules() { return kPlainRules; }

}  // namespace argosy::engines
