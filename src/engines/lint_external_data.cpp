// External data: must be there, long enough, inside the folder, and used.

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

/// Reports once for each graph with data files for which `test(graph, external)` is true; `text(names)` is the message.
template <class Test, class Text>
void report(const LintedBundle& bundle, const FindingSink& found, Test test, Text text) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    std::vector<std::string> names;
    for (const OnnxExternalFile& external : graph.model->external_files) {
      if (test(graph, external)) names.push_back(external.location);
    }
    if (!names.empty()) found.add(graph.file, text(some_of(names)));
  }
}

/// Files that graphs say their data is in.
std::set<std::string> used_files(const LintedBundle& bundle) {
  std::set<std::string> used;
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    for (const OnnxExternalFile& external : graph.model->external_files) used.insert(beside(graph, external.location));
  }
  return used;
}

void check_outside(const LintedBundle& bundle, const FindingSink& found) {
  report(
      bundle, found,
      [](const LintedGraph&, const OnnxExternalFile& external) { return !is_plain_relative_path(external.location); },
      [](const std::string& names) { return format("its data is said to be in {}, outside its folder", names); });
}

bool is_missing(const OnnxExternalFile& external) {
  return is_plain_relative_path(external.location) && !external.available_bytes;
}

/// An existing file of a usual name that no graph refers to; empty if there is none.
std::string unclaimed(const LintedBundle& bundle, const LintedGraph& graph, const std::set<std::string>& used) {
  for (const std::string& name : usual_names(graph)) {
    std::string file = beside(graph, name);
    if (bundle.has(file) && !used.contains(file)) return name;
  }
  return "";
}

/// If a graph lacks one file, and an unused file has a usual name, that is the one.
bool is_misnamed(const LintedBundle& bundle, const LintedGraph& graph, const std::set<std::string>& used) {
  const auto& files = graph.model->external_files;
  return std::count_if(files.begin(), files.end(), is_missing) == 1 && !unclaimed(bundle, graph, used).empty();
}

void check_missing(const LintedBundle& bundle, const FindingSink& found) {
  std::set<std::string> used = used_files(bundle);
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model || is_misnamed(bundle, graph, used)) continue;
    std::vector<std::string> names;
    for (const OnnxExternalFile& external : graph.model->external_files) {
      if (is_missing(external)) names.push_back(external.location);
    }
    if (!names.empty())
      found.add(graph.file,
                format("its weights are in {}, which {} not there", some_of(names), names.size() == 1 ? "is" : "are"));
  }
}

void check_misnamed(const LintedBundle& bundle, const FindingSink& found) {
  std::set<std::string> used = used_files(bundle);
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model || !is_misnamed(bundle, graph, used)) continue;
    const auto& files = graph.model->external_files;
    std::string wanted = quoted(std::find_if(files.begin(), files.end(), is_missing)->location);
    std::string instead = quoted(unclaimed(bundle, graph, used));
    found.add(graph.file, format("its weights are in {}, but the file is called {}", wanted, instead),
              format("rename {} to {}; the name is written inside the graph", instead, wanted));
  }
}

void check_short(const LintedBundle& bundle, const FindingSink& found) {
  report(
      bundle, found,
      [](const LintedGraph&, const OnnxExternalFile& external) {
        return external.available_bytes && *external.available_bytes < external.needed_bytes;
      },
      [](const std::string& names) { return format("{} ends before the last of its tensors", names); });
}

bool is_below(const fs::path& path, const fs::path& folder) {
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

/// ONNX Runtime follows links as long as the data ends up in the folder of the graph, or in the one of the file that
/// the graph is a link to: the cache of the Hub is laid out so.
void check_linked_data(const LintedBundle& bundle, const FindingSink& found) {
  report(
      bundle, found,
      [&](const LintedGraph& graph, const OnnxExternalFile& external) {
        if (!external.available_bytes) return false;
        std::error_code error;
        fs::path file = bundle.folder() / graph.file;
        fs::path folder = fs::canonical(file.parent_path(), error), real = fs::canonical(file, error);
        fs::path data = fs::canonical(file.parent_path() / external.location, error);
        return !error && !is_below(data, folder) && !is_below(data, real.parent_path());
      },
      [](const std::string& names) { return format("{} is a link to a file outside its folder", names); });
}

/// Whether a file looks like the data of graphs: "model.onnx.data", "model_q4.onnx_data_1", "weights.data".
bool looks_like_data(std::string_view name) {
  return name.ends_with(".data") || name.find(".onnx_data") != std::string_view::npos ||
         name.find(".onnx.data") != std::string_view::npos;
}

void check_unused(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) return;  // it may be what uses them
  }
  std::set<std::string> used = used_files(bundle);
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

constexpr LintRule kExternalDataRules[] = {
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
     "put the file itself, or a hard link, in place of the symbolic link", check_linked_data},
    {"external-data-shapes", kLintWarning,
     "small integers in external data, which shape inference cannot read where they are shapes (optimum-onnx#13)",
     "write the graph again with tensors below 1 kB inside it", check_numbers},
    {"external-data-unused", kLintWarning, "a file of weights that no graph uses",
     "remove it, or bring the graph that it belongs to", check_unused},
};

}  // namespace

std::span<const LintRule> lint_external_data_rules() { return kExternalDataRules; }

}  // namespace argosy::engines
