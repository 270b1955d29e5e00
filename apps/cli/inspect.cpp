#include "base/text.h"
#include "bundle_graphs.h"
#include "commands.h"
#include "driver/read_input.h"
#include "inspect/graph_html.h"
#include "inspect_format.h"
#include "io/write_file.h"
#include "passes/run_passes.h"

namespace argosy::cli {
namespace {

/// Of a page: it says nothing of where the file is.
std::string title_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Result<std::string> inspect_one(const InspectOptions& options, const Environment& environment,
                                Diagnostics& diagnostics) {
  ARGOSY_TRY(InputKind kind, input_kind(options.path));
  if (!options.html.empty() && kind != InputKind::kExecutorch && kind != InputKind::kOnnx) {
    return fail(ErrorCode::kInvalidInput, format("there is no page of a {}", describe(kind)),
                "--html shows the graph of an .onnx file or the memory of a .pte file");
  }
  size_t top = options.top == 0 ? SIZE_MAX : options.top;
  if (kind == InputKind::kCheckpoint) {
    ARGOSY_TRY(CheckpointReport report, inspect_checkpoint(options.path, options.json ? 0 : top));
    return options.json ? checkpoint_json(options.path, report) : checkpoint_text(options.path, report, top);
  }
  if (kind == InputKind::kOnnx) {
    ARGOSY_TRY(OnnxReport report,
               inspect_onnx(options.path, options.html.empty() ? OnnxNodes::kCounted : OnnxNodes::kRead));
    if (!options.html.empty()) {
      std::string page = graph_html(title_of(options.path), report, report_graph(report.model));
      ARGOSY_TRY_STATUS(write_file(options.html, page, Overwrite::kReplace));
    }
    return options.json ? onnx_json(options.path, report) : onnx_text(options.path, report, top);
  }
  if (kind == InputKind::kExecutorch) {
    ARGOSY_TRY(PteReport report, inspect_pte(options.path));
    if (!options.html.empty()) {
      std::string page = memory_html(title_of(options.path), report);
      ARGOSY_TRY_STATUS(write_file(options.html, page, Overwrite::kReplace));
    }
    return options.json ? pte_json(options.path, report) : pte_text(options.path, report, top);
  }
  InputOptions input;
  input.schemas = options.schemas.empty() ? environment.schemas : std::filesystem::path(options.schemas);
  input.diagnostics = &diagnostics;
  ARGOSY_TRY(InputProgram program, read_input(options.path, input));
  ARGOSY_TRY_STATUS(verify_input(program.program, diagnostics));
  ProgramReport report = inspect_program(program.program);
  return options.json ? program_json(options.path, kind, report) : program_text(options.path, kind, report, top);
}

/// A folder that an export wrote is inspected graph by graph; another one is a checkpoint.
Result<std::string> inspect(const InspectOptions& options, const Environment& environment, Diagnostics& diagnostics) {
  ARGOSY_TRY(BundleGraphs bundle, listed_graphs(options.path));
  if (bundle.graphs.empty()) return inspect_one(options, environment, diagnostics);
  if (!options.html.empty()) {
    return fail(ErrorCode::kInvalidInput, format("{} has {} graphs", options.path, bundle.graphs.size()),
                format("name one for --html: {}/{}", options.path, bundle.graphs[0]));
  }
  std::vector<std::string> texts;
  for (const std::string& graph : bundle.graphs) {
    InspectOptions one = options;
    one.path = (std::filesystem::path(options.path) / graph).string();
    ARGOSY_TRY(std::string text, inspect_one(one, environment, diagnostics));
    if (options.json) text.erase(text.find_last_not_of('\n') + 1);
    texts.push_back(std::move(text));
  }
  return options.json ? format("{{\"graphs\": [{}]}}\n", join(texts, ", ")) : join(texts, "\n");
}

}  // namespace

int run_inspect(const InspectOptions& options, const Environment& environment, Terminal& terminal) {
  Diagnostics diagnostics;
  Result<std::string> text = inspect(options, environment, diagnostics);
  if (!text) {
    terminal.print_error(text.error());
    terminal.print_further(diagnostics, text.error());
    return kFailed;
  }
  terminal.summary().leave();
  return terminal.print(*text) ? kDone : kFailed;
}

}  // namespace argosy::cli
