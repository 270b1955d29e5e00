#include <algorithm>

#include "base/text.h"
#include "commands.h"
#include "driver/bundle_graphs.h"
#include "inspect_format.h"
#include "table.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr ptrdiff_t kMaxLines = 40;  // in full; further graphs of a folder are one line each
constexpr size_t kMaxGraphs = 64;

Result<Explanation> explain_file(const fs::path& path, const std::string& name) {
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

/// The text; the members of the summary are added, with all graphs in full.
Result<std::string> explain(const fs::path& path, JsonWriter& writer) {
  std::error_code ignored;
  writer.key("path").value(path.string());
  if (!fs::is_directory(path, ignored)) {
    ARGOSY_TRY(Explanation file, explain_file(path, path.string()));
    file.write(writer.key("graphs").begin_array());
    writer.end_array();
    return file.text();
  }
  ARGOSY_TRY(BundleGraphs folder, listed_graphs(path));
  if (folder.graphs.empty()) folder.graphs = graphs_in(path);
  if (folder.graphs.empty()) {
    return fail(ErrorCode::kNotFound, format("there is no .onnx or .pte file in {}", path.string()),
                "name a folder that argosy export onnx or argosy export executorch wrote, or a file");
  }
  std::string text =
      format("{}: folder with {}{}\n", path.string(), count_of(folder.graphs.size(), "graph"), printable(folder.about));
  writer.key("graphs").begin_array();
  bool is_cut = false;
  for (size_t i = 0; i < folder.graphs.size(); ++i) {
    if (i == kMaxGraphs) {
      text += format("\n… {} more\n", format_count(folder.graphs.size() - i));
      break;
    }
    ARGOSY_TRY(Explanation file, explain_file(path / folder.graphs[i], folder.graphs[i]));
    file.write(writer);
    std::string part = file.text();
    bool fits = i == 0 || std::ranges::count(text, '\n') + std::ranges::count(part, '\n') < kMaxLines;
    text += "\n" + (fits ? part : part.substr(0, part.find('\n') + 1));
    is_cut = is_cut || !fits;
  }
  writer.end_array();
  return is_cut ? text + "\nargosy explain says more of one file\n" : text;
}

}  // namespace

int run_explain(const ExplainOptions& options, Terminal& terminal) {
  Result<std::string> text = explain(options.path, terminal.summary().members());
  if (!text) {
    terminal.print_error(text.error());
    return kFailed;
  }
  return terminal.wants_json() || terminal.print(*text) ? kDone : kFailed;
}

}  // namespace argosy::cli
