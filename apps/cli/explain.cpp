#include <algorithm>
#include <set>

#include "base/text.h"
#include "commands.h"
#include "driver/export_manifest.h"
#include "inspect_format.h"
#include "io/file.h"
#include "io/inside_folder.h"
#include "io/names.h"
#include "table.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr ptrdiff_t kMaxLines = 40;  // in full; further graphs of a folder are one line each
constexpr int kMaxDepth = 2;         // of folders in which graphs are looked for
constexpr size_t kMaxGraphs = 64;

bool is_graph(std::string_view name) { return name.ends_with(".onnx") || name.ends_with(".pte"); }

/// The graphs of a folder, by their paths in it, and what the folder says of itself.
struct Folder {
  std::vector<std::string> graphs;
  std::string about;
};

/// What a manifest lists. Its names may be anything: those that lead out of the folder are errors.
Result<Folder> listed_graphs(const fs::path& folder) {
  Folder result;
  fs::path path = folder / kBundleManifest;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return result;
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxManifest));
  ARGOSY_TRY(JsonDocument manifest, JsonDocument::parse_owned(std::move(text), quoted(path.native(), 1000)));
  std::set<std::string> seen;  // a program is listed once for each of its methods
  for (JsonView graph : manifest.root().find("graphs").items()) {
    std::string file = text_at(graph, "file");
    if (!is_graph(file) || !seen.insert(file).second) continue;
    if (!is_plain_relative_path(file)) {
      return fail(
          ErrorCode::kInvalidInput,
          format("{} lists {}, which is not a plain path inside the folder", quoted(path.native(), 1000), quoted(file)),
          "name the file itself");
    }
    ARGOSY_TRY_STATUS(check_inside_folder(folder / file, folder));
    result.graphs.push_back(std::move(file));
  }
  std::string engine = text_at(manifest.root(), "engine"), model = text_at(manifest.root(), "model_class");
  if (!model.empty()) result.about += ", " + printable(model);
  if (!engine.empty()) result.about += ", for " + printable(engine);
  return result;
}

/// All graphs that are in a folder.
std::vector<std::string> graphs_in(const fs::path& folder) {
  std::vector<std::string> graphs;
  std::error_code failure;
  for (fs::recursive_directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    std::error_code ignored;
    if (it.depth() >= kMaxDepth) it.disable_recursion_pending();
    if (is_graph(it->path().filename().string()) && it->is_regular_file(ignored))
      graphs.push_back(it->path().lexically_relative(folder).generic_string());
  }
  std::ranges::sort(graphs);
  return graphs;
}

Result<std::string> explain_file(const fs::path& path, const std::string& name) {
  ARGOSY_TRY(InputKind kind, input_kind(path));
  if (kind == InputKind::kOnnx) {
    ARGOSY_TRY(OnnxReport report, inspect_onnx(path, OnnxNodes::kRead));
    return onnx_explanation(name, report);
  }
  if (kind == InputKind::kExecutorch) {
    ARGOSY_TRY(PteReport report, inspect_pte(path));
    return pte_explanation(name, report);
  }
  return fail(ErrorCode::kInvalidInput, format("{} is a {}, not a graph for an engine", path.string(), describe(kind)),
              "argosy inspect shows what is in it; explain takes a bundle's folder, an .onnx or a .pte file");
}

Result<std::string> explain(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return explain_file(path, path.string());
  ARGOSY_TRY(Folder folder, listed_graphs(path));
  if (folder.graphs.empty()) folder.graphs = graphs_in(path);
  if (folder.graphs.empty()) {
    return fail(ErrorCode::kNotFound, format("there is no .onnx or .pte file in {}", path.string()),
                "name a folder that argosy export onnx or argosy export executorch wrote, or a file");
  }
  std::string text =
      format("{}: folder with {}{}\n", path.string(), count_of(folder.graphs.size(), "graph"), folder.about);
  bool is_cut = false;
  for (size_t i = 0; i < folder.graphs.size(); ++i) {
    if (i == kMaxGraphs) {
      text += format("\n… {} more\n", format_count(folder.graphs.size() - i));
      break;
    }
    ARGOSY_TRY(std::string part, explain_file(path / folder.graphs[i], folder.graphs[i]));
    bool fits = i == 0 || std::ranges::count(text, '\n') + std::ranges::count(part, '\n') < kMaxLines;
    text += "\n" + (fits ? part : part.substr(0, part.find('\n') + 1));
    is_cut = is_cut || !fits;
  }
  return is_cut ? text + "\nargosy explain says more of one file\n" : text;
}

}  // namespace

int run_explain(const ExplainOptions& options, Terminal& terminal) {
  Result<std::string> text = explain(options.path);
  if (!text) {
    terminal.print_error(text.error());
    return kFailed;
  }
  return terminal.print(*text) ? kDone : kFailed;
}

}  // namespace argosy::cli
