#include "api/inspect_json.h"

#include <vector>

#include "base/text.h"
#include "driver/bundle_graphs.h"
#include "driver/read_input.h"
#include "inspect/report_json.h"
#include "passes/run_passes.h"

namespace argosy::api {
namespace {

namespace fs = std::filesystem;

Result<std::string> inspect_one(const fs::path& path, const fs::path& schemas, Diagnostics& diagnostics) {
  ARGOSY_TRY(InputKind kind, input_kind(path));
  if (kind == InputKind::kCheckpoint) {
    ARGOSY_TRY(CheckpointReport report, inspect_checkpoint(path, 0));
    return checkpoint_json(path.string(), report);
  }
  if (kind == InputKind::kOnnx) {
    ARGOSY_TRY(OnnxReport report, inspect_onnx(path));
    return onnx_json(path.string(), report);
  }
  if (kind == InputKind::kExecutorch) {
    ARGOSY_TRY(PteReport report, inspect_pte(path));
    return pte_json(path.string(), report);
  }
  InputOptions input;
  input.schemas = schemas;
  input.diagnostics = &diagnostics;
  ARGOSY_TRY(InputProgram program, read_input(path, input));
  ARGOSY_TRY_STATUS(verify_input(program.program, diagnostics));
  return program_json(path.string(), kind, inspect_program(program.program));
}

}  // namespace

Result<std::string> inspect_json(const fs::path& path, const fs::path& schemas, Diagnostics& diagnostics) {
  ARGOSY_TRY(BundleGraphs bundle, listed_graphs(path));
  if (bundle.graphs.empty()) return inspect_one(path, schemas, diagnostics);
  std::vector<std::string> texts;
  for (const std::string& graph : bundle.graphs) {
    ARGOSY_TRY(std::string text, inspect_one(path / graph, schemas, diagnostics));
    text.erase(text.find_last_not_of('\n') + 1);
    texts.push_back(std::move(text));
  }
  return format("{{\"graphs\": [{}]}}\n", join(texts, ", "));
}

}  // namespace argosy::api
