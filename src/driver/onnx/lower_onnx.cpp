#include "driver/onnx/lower_onnx.h"

#include "backends/onnx/lowering.h"
#include "backends/onnx/mixed_half.h"
#include "backends/onnx/quantize.h"
#include "base/text.h"
#include "driver/export_hooks.h"
#include "driver/onnx/weights_as_inputs.h"
#include "driver/user_rules.h"

namespace argosy {
namespace {

bool is_shape_only(const TensorSource& source) { return source.recipe().starts_with("shape_only("); }

/// The last step: some of it in f16, or outputs that tell what could be.
Status apply_half(onnx::Model& model, const std::string& component, const onnx::LoweringOptions& options) {
  if (options.half == onnx::HalfMode::kNone) return {};
  if (options.half == onnx::HalfMode::kObserved) return onnx::observe_values(model);
  if (options.seen == nullptr) return onnx::narrow_to_half(model, nullptr);
  auto found = options.seen->find(component);
  if (found == options.seen->end()) {
    return fail(ErrorCode::kInvalidInput, format("the values that were seen lack those of {}", quoted(component)),
                "they are of another model or of other options: have them seen anew");
  }
  return onnx::narrow_to_half(model, &found->second);
}

}  // namespace

Result<const engines::Device*> device_of(const OnnxOptions& options) {
  const engines::Device* device = engines::find_device(options.device);
  if (device != nullptr) return device;
  return fail(ErrorCode::kInvalidInput, format("there is no device {}", quoted(options.device)),
              format("name one of {}", engines::device_names()));
}

Status check_opset(const OnnxOptions& options) {
  int opset = options.lowering.opset;
  if (opset >= onnx::kMinOpset && opset <= onnx::kMaxOpset) return {};
  return fail(ErrorCode::kInvalidInput, format("opset {} is not written", opset),
              format("ask for one of {} to {}", onnx::kMinOpset, onnx::kMaxOpset));
}

Result<std::vector<onnx::NamedModel>> lower_to_onnx(Program& program, std::vector<BoundGraph> graphs,
                                                    const OnnxOptions& options, Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_opset(options));
  ARGOSY_TRY_STATUS(onnx::check_quantization(options.lowering.quantization));
  std::vector<std::string> files;
  for (const BoundGraph& graph : graphs) files.push_back(graph.file);
  if (graphs.empty()) {
    for (const Component& component : program.components) files.push_back(format("{}.onnx", component.name));
  }
  auto bind = graphs.empty() ? std::nullopt : std::optional(bind_graphs(std::move(graphs)));
  const Pipeline pipeline = after_rules(options.rules, onnx::onnx_pipeline(options.lowering, std::move(bind)));
  ARGOSY_TRY_STATUS(run_export_passes(pipeline, program, options.hooks, diagnostics));
  std::vector<onnx::NamedModel> models;
  Status status;  // the first error; those of later components are in the diagnostics
  for (size_t i = 0; i < program.components.size(); ++i) {
    const Component& component = program.components[i];
    auto model = onnx::translate(program, component, options.lowering, diagnostics);
    if (!model) {
      if (status) status = fail(std::move(model.error()));
      continue;
    }
    if (options.lowering.optimize != onnx::Optimize::kOff) ARGOSY_TRY_STATUS(onnx::optimize(*model));
    ARGOSY_TRY_STATUS(apply_half(*model, component.name, options.lowering));
    if (options.missing_weights_as_inputs) onnx::make_inputs(*model, is_shape_only, onnx::StoredValue::kDropped);
    models.push_back({std::move(files[i]), *std::move(model)});
  }
  if (!status) return fail(std::move(status.error()));
  return models;
}

std::vector<std::string> half_lines(std::span<const onnx::NamedModel> graphs) {
  std::vector<std::string> lines;
  for (const onnx::NamedModel& each : graphs) {
    auto found = each.model.metadata.find(std::string(onnx::kMixedHalfKey));
    if (found != each.model.metadata.end()) lines.push_back(format("{}: {}", each.file, found->second));
  }
  return lines;
}

Result<std::string> onnx_model_bytes(Program program, const OnnxOptions& options, Diagnostics& diagnostics) {
  if (program.components.size() != 1) {
    return fail(ErrorCode::kInvalidInput,
                format("one component is to become a model, and there are {}", program.components.size()));
  }
  ARGOSY_TRY(std::vector<onnx::NamedModel> models, lower_to_onnx(program, {}, options, diagnostics));
  onnx::LayoutOptions layout;
  layout.weights = onnx::WeightsMode::kEmbed;
  ARGOSY_TRY(onnx::Bundle bundle, onnx::Bundle::build(std::move(models), layout));
  ARGOSY_TRY(onnx::EncodedModel encoded, bundle.encoded(0));
  return onnx::to_bytes(encoded);
}

}  // namespace argosy
