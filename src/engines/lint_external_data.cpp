// Weights in files of their own: there, long enough, inside the folder, and used.

#include <algorithm>
#include <set>
#include <system_error>

#include "engines/lint_rule.h"
#include "io/names.h"

namespace argosy::engines {
namespace {

namespace fs = std::filesystem;

std::string beside(const LintedGraph& graph, std::string_view location) {
  std::string name(graph.folder());
  if (!name.empty()) name += '/';
  return name.append(location);
}

/// Names that exporters give to the data of a graph: "model.onnx.data", "model.onnx_data", "model.data", "model.bin".
std::vector<std::string> usual_names(const LintedGraph& graph) {
  std::string stem(graph.stem());
  return {stem + ".onnx.data", stem + ".onnx_data", stem + ".data", stem + ".bin"};
}

/// Calls `visit(graph, external)` for the data files of all graphs.
template <class Visit>
void each_external(const LintedBundle& bundle, Visit visit) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    for (const OnnxExternalFile& external : graph.model->external_files) visit(graph, external);
  }
}

void check_outside(const LintedBundle& bundle, const FindingSink& found) {
  each_external(bundle, [&](const LintedGraph& graph, const OnnxExternalFile& external) {
    if (external.location.empty())
      found.add(graph.file, "it has external data without a location");
    else if (!is_plain_relative_path(external.location))
      found.add(graph.file, format("its data is said to be in {}, outside its folder", quoted(external.location)));
  });
}

/// A file of another naming style that is there instead, and nobody else's; empty if there is none.
std::string found_instead(const LintedBundle& bundle, const LintedGraph& graph, std::string_view location) {
  std::set<std::string> used;
  each_external(bundle, [&](const LintedGraph& other, const OnnxExternalFile& external) {
    used.insert(beside(other, external.location));
  });
  for (const std::string& name : usual_names(graph)) {
    std::string file = beside(graph, name);
    if (name != location && bundle.has(file) && !used.contains(file)) return name;
  }
  return "";
}

void check_missing(const LintedBundle& bundle, const FindingSink& found) {
  each_external(bundle, [&](const LintedGraph& graph, const OnnxExternalFile& external) {
    if (!is_plain_relative_path(external.location) || bundle.has(beside(graph, external.location))) return;
    if (found_instead(bundle, graph, external.location).empty())
      found.add(graph.file, format("its weights are in {}, which is not there", quoted(external.location)));
  });
}

void check_misnamed(const LintedBundle& bundle, const FindingSink& found) {
  each_external(bundle, [&](const LintedGraph& graph, const OnnxExternalFile& external) {
    if (!is_plain_relative_path(external.location) || bundle.has(beside(graph, external.location))) return;
    std::string instead = found_instead(bundle, graph, external.location);
    if (instead.empty()) return;
    found.add(
        graph.file,
        format("its weights are in {}, but the file is called {}", quoted(external.location), quoted(instead)),
        format("rename {} to {}; the name is written inside the graph", quoted(instead), quoted(external.location)));
  });
}

void check_short(const LintedBundle& bundle, const FindingSink& found) {
  each_external(bundle, [&](const LintedGraph& graph, const OnnxExternalFile& external) {
    if (external.available_bytes && *external.available_bytes < external.needed_bytes)
      found.add(graph.file, format("{} has {} bytes, it needs {}", quoted(external.location), *external.available_bytes,
                                   external.needed_bytes));
  });
}

bool is_below(const fs::path& path, const fs::path& folder) {
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

/// ONNX Runtime follows links as long as the data ends up in the folder of the graph, or in the one of the file that
/// the graph is a link to: the cache of the Hub is laid out so.
void check_links(const LintedBundle& bundle, const FindingSink& found) {
  each_external(bundle, [&](const LintedGraph& graph, const OnnxExternalFile& external) {
    if (!external.available_bytes || !is_plain_relative_path(external.location)) return;
    std::error_code error;
    fs::path file = bundle.folder() / graph.file;
    fs::path folder = fs::canonical(file.parent_path(), error), real = fs::canonical(file, error);
    fs::path data = fs::canonical(file.parent_path() / external.location, error);
    if (!error && !is_below(data, folder) && !is_below(data, real.parent_path()))
      found.add(graph.file, format("{} is a link to a file outside its folder", quoted(external.location)));
  });
}

/// Whether a file looks like the data of graphs: "model.onnx.data", "model_q4.onnx_data_1", "weights.data".
bool looks_like_data(std::string_view name) {
  return name.ends_with(".data") || name.find(".onnx_data") != std::string_view::npos ||
         name.find(".onnx.data") != std::string_view::npos;
}

void check_unused(const LintedBundle& bundle, const FindingSink& found) {
  std::set<std::string> used;
  bool has_unreadable = false;
  for (const LintedGraph& graph : bundle.graphs()) has_unreadable = has_unreadable || !graph.model;
  if (has_unreadable) return;  // it may be what uses them
  each_external(bundle, [&](const LintedGraph& graph, const OnnxExternalFile& external) {
    used.insert(beside(graph, external.location));
  });
  for (const LintedFile& file : bundle.files()) {
    if (looks_like_data(file.name) && !used.contains(file.name))
      found.add(file.name, format("no graph uses these {}", format_bytes(file.size)));
  }
}

void check_numbers(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.external_numbers.empty())
      found.add(graph.file,
                format("{} are external, {} in all", some_of(graph.external_numbers), graph.external_numbers.size()));
  }
}

constexpr LintRule kRules[] = {
    {"external-data-outside", kLintError, "external data at an absolute path, or one with '..': runtimes refuse it",
     "write the graph again with its data beside it", check_outside},
    {"external-data-missing", kLintError,
     "a file of weights that a graph names and that is not there (sentence-transformers#3438)",
     "copy the file beside the graph, from where the graph was made", check_missing},
    {"external-data-misnamed", kLintError, "a file of weights under another name than the graph says (optimum#1736)",
     "rename the file", check_misnamed},
    {"external-data-short", kLintError, "a file of weights that ends before the last tensor in it",
     "the download or copy did not complete; get this file again", check_short},
    {"external-data-link", kLintError,
     "a file of weights that is a symbolic link out of the folder: runtimes refuse it",
     "put the file itself, or a hard link, in place of the symbolic link", check_links},
    {"external-data-shapes", kLintWarning,
     "small integers in external data, which shape inference cannot read where they are shapes (optimum-onnx#13)",
     "write the graph again with tensors below 1 kB inside it", check_numbers},
    {"external-data-unused", kLintWarning, "a file of weights that no graph uses",
     "remove it, or bring the graph that it belongs to", check_unused},
};

}  // namespace

std::span<const LintRule> lint_external_data_rules() { return kRules; }

}  // namespace argosy::engines
