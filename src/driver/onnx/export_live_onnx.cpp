#include "driver/onnx/export_live_onnx.h"

#include <algorithm>
#include <set>

#include "backends/onnx/encode.h"
#include "backends/onnx/names.h"
#include "backends/onnx/writer.h"
#include "base/text.h"
#include "driver/onnx/weights_as_inputs.h"
#include "frontends/read_program.h"
#include "io/output.h"
#include "passes/run_passes.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ops_of(const Program& program) {
  std::set<std::string> names;
  for (const Component& component : program.components) {
    for (const Graph& graph : component.graphs) {
      for (NodeId node : graph.nodes()) names.insert(program.schemas[graph[node].op].name);
    }
  }
  return {names.begin(), names.end()};
}

/// The first values of `refs` under the names that callers know them by.
Status rename(onnx::Model& model, std::span<const onnx::Ref> refs, std::span<const std::string> names,
              std::string_view what) {
  if (names.size() > refs.size()) {
    return fail(ErrorCode::kInternal, format("the model has {} {}, {} were expected", refs.size(), what, names.size()),
                "this is a bug in argosy; please report it");
  }
  for (size_t i = 0; i < names.size(); ++i) model[refs[i]].name = names[i];
  return {};
}

/// Whether its bytes come from the model that was exported, not from the translation.
bool is_weight(const TensorSource& source) {
  if (source.inputs().empty()) return !source.recipe().starts_with("literal(");
  return std::ranges::any_of(source.inputs(), [](const TensorSourcePtr& input) { return is_weight(*input); });
}

}  // namespace

Result<LiveOnnxModel> lower_live(const std::filesystem::path& capture, std::span<const LiveTensor> weights,
                                 std::span<const std::string> inputs, std::span<const std::string> outputs,
                                 const onnx::LoweringOptions& options, Diagnostics& diagnostics) {
  ReadOptions read_options;
  read_options.diagnostics = &diagnostics;
  ARGOSY_TRY(Program program, read_program(capture, read_options));
  ARGOSY_TRY_STATUS(attach_live(program, weights));
  PassContext context{diagnostics};
  PipelineHooks hooks;
  hooks.verify_each = true;
  ARGOSY_TRY([[maybe_unused]] bool has_changed, verify_and_run(onnx::onnx_pipeline(options), program, context, hooks));
  LiveOnnxModel result;
  result.ops = ops_of(program);
  ARGOSY_TRY(result.model, onnx::translate(program, program.components.front(), options, diagnostics));
  if (options.optimize != onnx::Optimize::kOff) ARGOSY_TRY_STATUS(onnx::optimize(result.model));
  onnx::Graph& entry = result.model.graphs.front();
  ARGOSY_TRY_STATUS(rename(result.model, entry.inputs, inputs, "inputs"));
  ARGOSY_TRY_STATUS(rename(result.model, entry.outputs, outputs, "outputs"));
  onnx::name_model(result.model);
  return result;
}

void expose_weights(onnx::Model& model, WeightExposure exposure) {
  if (exposure == WeightExposure::kStored) return;
  bool is_stored = exposure == WeightExposure::kStoredAndOverride;
  onnx::make_inputs(model, is_weight, is_stored ? onnx::StoredValue::kDefault : onnx::StoredValue::kDropped);
}

Result<std::string> live_model_bytes(const onnx::Model& model) {
  std::vector<onnx::TensorPlace> places(model.initializers.size());
  ARGOSY_TRY(onnx::EncodedModel encoded, onnx::encode(model, places));
  return onnx::to_bytes(encoded);
}

Status save_live_model(const onnx::Model& model, const std::filesystem::path& path, bool external_data) {
  onnx::LayoutOptions options;
  options.weights = external_data ? onnx::WeightsMode::kCopy : onnx::WeightsMode::kEmbed;
  std::string file = path.filename().string();
  options.data_file = file + ".data";
  ARGOSY_TRY(onnx::Bundle bundle, onnx::Bundle::build({{file, model}}, options));
  ARGOSY_TRY(OutputFiles files, OutputFiles::create(fs::absolute(path), Overwrite::kReplace));
  ARGOSY_TRY([[maybe_unused]] auto overflows, bundle.write(files.path(), {}));
  return files.commit();
}

}  // namespace argosy
