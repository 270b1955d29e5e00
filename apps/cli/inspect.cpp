#include "api/inspect_json.h"
#include "base/text.h"
#include "commands.h"
#include "driver/bundle_graphs.h"
#include "driver/read_input.h"
#include "inspect/graph_html.h"
#include "inspect_format.h"
#include "io/write_file.h"
#include "passes/run_passes.h"

namespace argosy::cli {
namespace {

/// Of a page: it says nothing of where the file is.
std::string title_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

/// The page that --html asks for.
Status write_page(const InspectOptions& options) {
  ARGOSY_TRY(InputKind kind, input_kind(options.path));
  if (kind == InputKind::kOnnx) {
    ARGOSY_TRY(OnnxReport report, inspect_onnx(options.path, OnnxNodes::kRead));
    return write_file(options.html, graph_html(title_of(options.path), report, report_graph(report.model)),
                      Overwrite::kReplace);
  }
  if (kind == InputKind::kExecutorch) {
    ARGOSY_TRY(PteReport report, inspect_pte(options.path));
    return write_file(options.html, memory_html(title_of(options.path), report), Overwrite::kReplace);
  }
  return fail(ErrorCode::kInvalidInput, format("there is no page of a {}", describe(kind)),
              "--html shows the graph of an .onnx file or the memory of a .pte file");
}

Result<std::string> inspect_one(const std::string& path, size_t top, const std::filesystem::path& schemas,
                                Diagnostics& diagnostics) {
  ARGOSY_TRY(InputKind kind, input_kind(path));
  if (kind == InputKind::kCheckpoint) {
    ARGOSY_TRY(CheckpointReport report, inspect_checkpoint(path, top));
    return checkpoint_text(path, report, top);
  }
  if (kind == InputKind::kOnnx) {
    ARGOSY_TRY(OnnxReport report, inspect_onnx(path));
    return onnx_text(path, report, top);
  }
  if (kind == InputKind::kExecutorch) {
    ARGOSY_TRY(PteReport report, inspect_pte(path));
    return pte_text(path, report, top);
  }
  InputOptions input;
  input.schemas = schemas;
  input.diagnostics = &diagnostics;
  ARGOSY_TRY(InputProgram program, read_input(path, input));
  ARGOSY_TRY_STATUS(verify_input(program.program, diagnostics));
  return program_text(path, kind, inspect_program(program.program), top);
}

/// A folder that an export wrote is inspected graph by graph; another one is a checkpoint.
Result<std::string> inspect(const InspectOptions& options, const Environment& environment, Diagnostics& diagnostics) {
  const size_t top = options.top == 0 ? SIZE_MAX : options.top;
  const std::filesystem::path schemas =
      options.schemas.empty() ? environment.schemas : std::filesystem::path(options.schemas);
  ARGOSY_TRY(BundleGraphs bundle, listed_graphs(options.path));
  if (!options.html.empty()) {
    if (!bundle.graphs.empty()) {
      return fail(ErrorCode::kInvalidInput, format("{} has {} graphs", options.path, bundle.graphs.size()),
                  format("name one for --html: {}/{}", options.path, bundle.graphs[0]));
    }
    ARGOSY_TRY_STATUS(write_page(options));
  }
  if (options.json) return api::inspect_json(options.path, schemas, diagnostics);
  if (bundle.graphs.empty()) return inspect_one(options.path, top, schemas, diagnostics);
  std::vector<std::string> texts;
  for (const std::string& graph : bundle.graphs) {
    ARGOSY_TRY(std::string text,
               inspect_one((std::filesystem::path(options.path) / graph).string(), top, schemas, diagnostics));
    texts.push_back(std::move(text));
  }
  return join(texts, "\n");
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
