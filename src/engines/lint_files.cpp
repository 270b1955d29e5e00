// What is there, and whether it can be read at all.

#include <algorithm>

#include "engines/lint_rule.h"
#include "io/names.h"

namespace argosy::engines {
namespace {

/// protobuf reads messages up to 2 GiB.
constexpr uint64_t kMaxProtobuf = (uint64_t{1} << 31) - 1;

void check_no_graph(const LintedBundle& bundle, const FindingSink& found) {
  bool has_program = std::any_of(bundle.files().begin(), bundle.files().end(),
                                 [](const LintedFile& file) { return file.name.ends_with(".pte"); });
  if (bundle.graphs().empty() && !has_program) found.add("", "there is no .onnx file");
}

void check_graph_too_large(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedFile& file : bundle.files()) {
    if (file.name.ends_with(".onnx") && file.size > kMaxProtobuf)
      found.add(file.name, format("it takes {}, protobuf reads up to 2 GiB", format_bytes(file.size)));
  }
}

void check_graph_unreadable(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) found.add(graph.file, graph.problem);
  }
  for (const LintedFile& file : bundle.files()) {
    if (file.name.ends_with(".onnx") && !file.is_regular)
      found.add(file.name, "it is no file, or a link to nothing", "put the graph itself there");
  }
}

void check_json_unreadable(const LintedBundle& bundle, const FindingSink& found) {
  for (const auto& [file, problem] : bundle.unreadable_json()) found.add(file, problem);
  for (const LintedFile& file : bundle.files()) {
    if (JsonView root = bundle.json(file.name); root.is_valid() && !root.is_object())
      found.add(file.name, "its JSON is no object");
  }
}

void check_linked_files(const LintedBundle& bundle, const FindingSink& found) {
  std::vector<std::string> leaving;
  for (const LintedFile& file : bundle.files()) {
    if (file.leaves) leaving.push_back(file.name);
  }
  if (!leaving.empty())
    found.add("", format("{} of its files are links to outside: {}", leaving.size(), some_of(leaving)));
}

void check_manifest_files(const LintedBundle& bundle, const FindingSink& found) {
  JsonView manifest = bundle.json("bundle.json");
  std::vector<std::string> missing;
  auto look = [&](JsonView name) {
    auto file = name.as_string();
    if (file && (!is_plain_relative_path(*file) || !bundle.has(*file))) missing.emplace_back(*file);
  };
  for (JsonView file : manifest.find("files").items()) look(file);
  for (JsonView graph : manifest.find("graphs").items()) look(graph.find("file"));
  if (!missing.empty()) found.add("bundle.json", format("it lists {}, not in the folder", some_of(missing)));
}

void check_more_files(const LintedBundle& bundle, const FindingSink& found) {
  if (bundle.has_more_files()) found.add("", "it has more files or folders than were looked at");
}

constexpr LintRule kFilesRules[] = {
    {"graph-none", kLintError, "no graph anywhere in the folder",
     "name the folder that has the .onnx files, or export again", check_no_graph},
    {"graph-unreadable", kLintError, "an .onnx file that is damaged, truncated, a Git LFS pointer or no model",
     "get or write this file again", check_graph_unreadable},
    {"graph-too-large", kLintError, "an .onnx file above the 2 GiB that protobuf reads (onnx#3275)",
     "write its weights as external data", check_graph_too_large},
    {"json-unreadable", kLintError, "a configuration or tokenizer file that is not valid JSON, or no object",
     "write this file again; NaN and Infinity are not JSON", check_json_unreadable},
    {"manifest-file-missing", kLintError, "a file that bundle.json lists and that is not there",
     "copy the whole folder again, or export again", check_manifest_files},
    {"link-outside", kLintWarning, "symbolic links that lead out of the folder, so that copies of it lack files",
     "copy with links followed (cp -rL) before the folder is moved or served", check_linked_files},
    {"folder-too-large", kLintWarning, "more files or deeper folders than are looked at",
     "name the folder of one bundle", check_more_files},
};

}  // namespace

std::span<const LintRule> lint_file_rules() { return kFilesRules; }

}  // namespace argosy::engines
