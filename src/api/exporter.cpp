#include "argosy/exporter.h"

#include <utility>

#include "api/bridge.h"

namespace argosy {
namespace {

/// What all formats are asked for alike.
template <class Options>
api::ExportCall call_of(std::string backend, const Options& options) {
  return {.backend = std::move(backend),
          .output = options.output,
          .weight_plan = options.weight_plan,
          .dtype = options.dtype,
          .rules = options.rules,
          .threads = options.threads,
          .scratch_bytes = options.scratch_bytes,
          .progress = options.progress};
}

/// Options as the command has them; those that are as usual are left out.
class Arguments {
 public:
  void add(const char* name, const std::string& value, const std::string& usual = "") {
    if (value != usual) list_.push_back(std::string(name) + "=" + value);
  }
  void add(const char* name, int64_t value, int64_t usual) { add(name, std::to_string(value), std::to_string(usual)); }
  void add_switch(const char* name, bool is_on) {
    if (is_on) list_.emplace_back(name);
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

const char* name_of(Engine engine) {
  switch (engine) {
    case Engine::kPlain: break;
    case Engine::kGenai: return "genai";
    case Engine::kTransformersJs: return "transformersjs";
    case Engine::kOptimum: return "optimum";
  }
  return "plain";
}

const char* name_of(WeightPlacement placement) {
  switch (placement) {
    case WeightPlacement::kCopy: break;
    case WeightPlacement::kLink: return "link";
    case WeightPlacement::kEmbed: return "embed";
  }
  return "copy";
}

std::vector<std::string> arguments_of(const OnnxExportOptions& options) {
  const OnnxExportOptions usual;
  Arguments arguments;
  arguments.add("--for", name_of(options.engine), "plain");
  arguments.add("--device", options.device, usual.device);
  arguments.add("--opset", options.opset, usual.opset);
  arguments.add("--optimize", options.optimize ? "" : "off");
  arguments.add("--weights", name_of(options.weights), "copy");
  arguments.add("--quantize", options.quantize);
  arguments.add("--quantize-block", options.quantize_block, usual.quantize_block);
  arguments.add("--quantize-method", options.quantize_method);
  arguments.add_switch("--quantize-zero-points", options.quantize_zero_points);
  arguments.add("--accuracy-level", options.accuracy_level, usual.accuracy_level);
  return arguments.take();
}

std::vector<std::string> arguments_of(const ExecutorchExportOptions& options) {
  const ExecutorchExportOptions usual;
  Arguments arguments;
  arguments.add("--task", options.task);
  arguments.add("--recipe", options.recipe == Recipe::kPortable ? "portable" : "");
  arguments.add("--shape", options.shape);
  arguments.add("--max-seq-len", options.max_seq_len, usual.max_seq_len);
  arguments.add_switch("--no-custom-sdpa", !options.custom_sdpa);
  arguments.add_switch("--no-custom-kv-cache", !options.custom_kv_cache);
  arguments.add_switch("--all-logits", options.all_logits);
  arguments.add_switch("--disable-dynamic-shapes", !options.dynamic_shapes);
  arguments.add_switch("--ptd", options.weights_beside);
  arguments.add("--qlinear", options.qlinear);
  arguments.add("--qlinear-group-size", options.qlinear_group_size, usual.qlinear_group_size);
  arguments.add("--qlinear-encoder", options.qlinear_encoder);
  arguments.add("--qlinear-encoder-group-size", options.qlinear_encoder_group_size, usual.qlinear_encoder_group_size);
  arguments.add("--qembedding", options.qembedding);
  arguments.add("--qembedding-group-size", options.qembedding_group_size, usual.qembedding_group_size);
  arguments.add("--qconv", options.qconv);
  return arguments.take();
}

}  // namespace

inline namespace v1 {

Result<Capture> Capture::open(const std::filesystem::path& path) {
  Capture capture;
  ARGOSY_TRY(capture.data_, api::open_capture(path));
  return capture;
}

const std::string& Capture::model_class() const { return data_->model_class; }
const std::vector<std::string>& Capture::components() const { return data_->components; }

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  Checkpoint checkpoint;
  ARGOSY_TRY(checkpoint.data_, api::open_checkpoint(path));
  return checkpoint;
}

size_t Checkpoint::tensor_count() const { return api::tensor_count(*data_); }
uint64_t Checkpoint::total_bytes() const { return api::total_bytes(*data_); }

Result<ExportedBundle> OnnxExporter::run(const Capture& capture, const Checkpoint& checkpoint,
                                         const OnnxExportOptions& options) const {
  api::ExportCall call = call_of("onnx", options);
  call.arguments = arguments_of(options);
  call.seen_values = options.seen_values;
  return api::export_model(*capture.data_, *checkpoint.data_, call);
}

Result<ExportedBundle> OnnxExporter::run(const std::vector<OnnxVariant>& variants, const Checkpoint& checkpoint,
                                         const OnnxExportOptions& options) const {
  if (variants.empty() || !options.weight_plan.empty() || !options.dtype.empty() || !options.quantize.empty()) {
    return fail(ErrorCode::kInvalidInput,
                "variants say how weights are stored, and so do the options, or there are none",
                "name at least one variant, and leave weight_plan, dtype and quantize of the options empty");
  }
  api::ExportCall call = call_of("onnx", options);
  call.arguments = arguments_of(options);
  call.seen_values = options.seen_values;
  for (const OnnxVariant& each : variants)
    call.variants.push_back({each.name, each.capture.data_->path.string(), each.weight_plan.string()});
  return api::export_model({}, *checkpoint.data_, call);
}

Result<ExportedBundle> ExecutorchExporter::run(const Capture& capture, const Checkpoint& checkpoint,
                                               const ExecutorchExportOptions& options) const {
  api::ExportCall call = call_of("executorch", options);
  call.arguments = arguments_of(options);
  call.seen_values = options.seen_values;
  return api::export_model(*capture.data_, *checkpoint.data_, call);
}

Result<ExportedBundle> Pt2Exporter::run(const Capture& capture, const Checkpoint& checkpoint,
                                        const Pt2ExportOptions& options) const {
  return api::export_model(*capture.data_, *checkpoint.data_, call_of("pt2", options));
}

}  // namespace v1
}  // namespace argosy
