#include "driver/validate_export.h"

#include <algorithm>
#include <map>
#include <set>

#include "backends/executorch/group_size.h"
#include "backends/executorch/quantize.h"
#include "backends/onnx/quantize.h"
#include "base/text.h"
#include "driver/dim_limits.h"
#include "driver/executorch/lower_executorch.h"
#include "driver/onnx/lower_onnx.h"
#include "engines/engine.h"
#include "engines/refused.h"

namespace argosy {
namespace {

/// What the folder says of the model, as there is no capture yet.
Result<engines::SourceModel> read_folder(const ExportRequest& request) {
  ARGOSY_TRY(JsonDocument nothing, JsonDocument::parse_owned("{}", "capture.json"));
  return engines::read_source_model(request.model, nothing.root());
}

/// Whether a capture leaves a dim sizes that `limit` does not.
bool is_wider(JsonView range, const DimLimit& limit) {
  if (range.find("min").as_integer().value_or(0) < limit.min) return true;
  return limit.max && range.find("max").as_integer().value_or(SymRange::kNoMax) > *limit.max;
}

/// Refuses flags for capturing that have no effect, as the capture that the user names was made otherwise.
Status check_capture(const ExportRequest& request, const std::map<std::string, DimLimit>& limits) {
  if (request.capture.empty() || (limits.empty() && !request.prefill)) return {};
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(request.capture));
  constexpr const char* kHint = "give it to argosy capture, or leave --capture out";
  bool has_prefill = false;
  for (JsonView component : manifest.root().find("components").items()) {
    has_prefill = has_prefill || component.find("name").as_string() == "prefill";
    for (auto [name, range] : component.find("dims").members()) {
      auto limit = limits.find(std::string(name));
      if (limit == limits.end() || !is_wider(range, limit->second)) continue;
      return fail(ErrorCode::kInvalidInput,
                  format("the capture that is given was made for other sizes of {} than --shape asks for", name),
                  kHint);
    }
  }
  if (request.prefill && !has_prefill)
    return fail(ErrorCode::kInvalidInput, "the capture that is given has no graph for prompts", kHint);
  return {};
}

Status check_graphs(const ExportRequest& request) {
  ARGOSY_TRY(auto limits, read_dim_limits(request.shape));
  return check_capture(request, limits);
}

Status check_engine(const engines::Engine& engine, const ExportRequest& request) {
  const OnnxOptions& options = request.options->onnx;
  if (options.weights == onnx::WeightsMode::kLink && !engine.limits.takes_linked_weights)
    return fail(ErrorCode::kInvalidInput, format("{} wants data files of its own", engine.title),
                "leave out --weights link");
  if (request.dtype == "bfloat16" && !engine.limits.takes_bfloat16)
    return fail(ErrorCode::kUnsupportedFeature, format("{} has no bfloat16", engine.title),
                "add --dtype fp32 or --dtype fp16");
  ARGOSY_TRY(engines::SourceModel model, read_folder(request));
  for (std::string_view file : engine.limits.needed_files) {
    if (model.has_file(file)) continue;
    bool is_left_out = std::ranges::find(model.left_out, file) != model.left_out.end();
    return fail(ErrorCode::kInvalidInput,
                is_left_out
                    ? format("{} of the model is a link that leads out of its folder, and {} opens no bundle "
                             "without it",
                             file, engine.title)
                    : format("the model's folder has no {}, and {} opens no bundle without it", file, engine.title),
                is_left_out ? "put the file itself there" : missing_file_hint(file));
  }
  return {};
}

/// Mixed float16 is made of float32.
Status check_half(const ExportRequest& request) {
  const onnx::LoweringOptions& options = request.options->onnx.lowering;
  if (options.half == onnx::HalfMode::kNone) return {};
  if (request.capture.empty() && request.dtype != "float32") {
    return fail(ErrorCode::kInvalidInput, format("mixed float16 is made of float32, not of {}", request.dtype),
                "write --dtype mixed16 and nothing else");
  }
  if (options.quantization.is_wanted()) {
    return fail(ErrorCode::kUnsupportedFeature, "weights in few bits have no mixed float16",
                "use --dtype q4f16, or leave out --quantize");
  }
  return {};
}

Status validate_onnx(const ExportRequest& request) {
  const OnnxOptions& options = request.options->onnx;
  ARGOSY_TRY_STATUS(check_opset(options));
  const engines::Engine* engine = engines::find_engine(options.engine);
  if (engine == nullptr) return fail(ErrorCode::kInvalidInput, format("there is no engine {}", quoted(options.engine)));
  ARGOSY_TRY(const engines::Device* device, device_of(options));
  if (request.dtype == "bfloat16" && !device->takes_bfloat16)
    return fail(ErrorCode::kUnsupportedFeature, format("{} has no bfloat16", device->title),
                "add --dtype fp32 or --dtype fp16");
  if (options.lowering.quantization.is_dynamic && !device->multiplies_integers)
    return fail(ErrorCode::kUnsupportedFeature, format("products in integers were not run on {}", device->title),
                "use --quantize int8, or leave out --device");
  if (onnx::has_nf4(options.lowering.quantization) && !device->ops.has(RuntimeOp::kMatMulBnb4))
    return fail(ErrorCode::kUnsupportedFeature, format("{} has no product with weights in NF4", device->title),
                "use --quantize int4, or leave out --device");
  ARGOSY_TRY_STATUS(check_half(request));
  if (options.own_engine && (!request.destination->is_folder || request.variants > 1)) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("the engine {} of a package takes a folder with one variant", quoted(options.own_engine->name)),
                "give a name that does not end in .onnx, and one --dtype");
  }
  if (request.destination->is_folder) return check_engine(*engine, request);
  if (request.variants > 1) {
    return fail(ErrorCode::kInvalidInput,
                format("{} is to be one model, but several variants are asked for",
                       quoted(request.destination->path.filename().native())),
                "give a name that does not end in .onnx, for a folder");
  }
  return check_one_model(*request.destination, options, 1);
}

/// Sizes of weights' dims. Rows of linear layers are among them, whichever way a checkpoint has them.
std::set<int64_t> dims_of_weights(const Checkpoint& checkpoint) {
  std::set<int64_t> sizes;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (tensor.shape.size() >= 2) sizes.insert(tensor.shape.begin(), tensor.shape.end());
  }
  return sizes;
}

Status check_groups(const ExportRequest& request) {
  const executorch::LoweringOptions& lowering = request.options->executorch.lowering;
  std::set<int64_t> sizes = dims_of_weights(*request.checkpoint);
  auto check = [&](std::string_view flag, int64_t group_size, auto fits) -> Status {
    if (group_size <= 0 || std::ranges::any_of(sizes, fits)) return {};
    return fail(ErrorCode::kInvalidInput,
                format("{}-group-size {} fits no weight of the model: none has rows of a multiple", flag, group_size),
                executorch::group_sizes_for(sizes));
  };
  for (auto [flag, how] : {std::pair("--qlinear", &lowering.linear), {"--qlinear-encoder", &lowering.encoder_linear}}) {
    ARGOSY_TRY_STATUS(
        check(flag, how->group_size, [&](int64_t size) { return executorch::fits_groups(size, how->group_size); }));
  }
  int64_t group_size = lowering.embedding.group_size;
  return check("--qembedding", group_size, [&](int64_t size) { return size % group_size == 0; });
}

Status validate_executorch(const ExportRequest& request, std::vector<std::string>& notes) {
  const ExecutorchOptions& options = request.options->executorch;
  ARGOSY_TRY([[maybe_unused]] auto limits, read_dim_limits(options.shape));
  ARGOSY_TRY_STATUS(executorch::check_task(options.task));
  if (!options.task.task.empty() && request.prefill) {
    return fail(ErrorCode::kInvalidInput, format("--prefill adds nothing to {}", options.task.task),
                "leave it out: the task's program takes prompts as they are");
  }
  ARGOSY_TRY_STATUS(executorch::check_quantization(options.lowering));
  ARGOSY_TRY_STATUS(check_groups(request));
  ARGOSY_TRY(engines::SourceModel model, read_folder(request));
  std::optional<int64_t> positions = model_facts(model).max_positions;
  if (positions && options.task.max_seq_len > *positions) {
    notes.push_back(format("--max-seq-len {} is more than the {} positions that the model was made for",
                           options.task.max_seq_len, *positions));
  }
  return {};
}

}  // namespace

std::string missing_file_hint(std::string_view file) {
  std::string_view maker = file.starts_with("tokenizer")                      ? "AutoTokenizer"
                           : file.find("processor") != std::string_view::npos ? "AutoProcessor"
                                                                              : "";
  std::string how = maker.empty() ? format("get {} from where the model is from", file)
                                  : format(
                                        "{}.from_pretrained(FOLDER).save_pretrained(FOLDER) makes one if transformers "
                                        "can read the model's own",
                                        maker);
  return how + "; --for plain writes graphs without one";
}

Status check_one_model(const ExportDestination& destination, const OnnxOptions& options, size_t components) {
  std::string file = quoted(destination.path.filename().native());
  constexpr const char* kHint = "give a name that does not end in .onnx, for a folder of models";
  const engines::Engine* engine = engines::find_engine(options.engine);
  if (engine != nullptr && !engine->limits.takes_one_file) {
    return fail(ErrorCode::kInvalidInput, format("{} is to be one model, but {} wants a folder", file, engine->title),
                kHint);
  }
  if (components == 1) return {};
  return fail(ErrorCode::kInvalidInput, format("{} is to be one model, but there are {}", file, components), kHint);
}

Status validate_export(const ExportRequest& request, std::vector<std::string>& notes) {
  ARGOSY_TRY_STATUS(check_graphs(request));
  if (request.backend->name == "onnx") return validate_onnx(request);
  if (request.backend->name == "executorch") return validate_executorch(request, notes);
  return {};
}

Status validate_components(const ExportRequest& request, std::span<const ComponentDims> components) {
  std::vector<std::string> names;
  std::set<std::string> dims;
  for (const ComponentDims& component : components) {
    names.push_back(component.name);
    dims.insert(component.dims.begin(), component.dims.end());
  }
  bool is_executorch = request.backend->name == "executorch";
  ARGOSY_TRY(auto limits, read_dim_limits(is_executorch ? request.options->executorch.shape : request.shape));
  ARGOSY_TRY_STATUS(check_dim_names(limits, {dims.begin(), dims.end()}));
  if (is_executorch) return executorch::check_task(request.options->executorch.task, names);
  if (request.backend->name != "onnx") return {};
  const OnnxOptions& options = request.options->onnx;
  if (!request.destination->is_folder) return check_one_model(*request.destination, options, names.size());
  const engines::Engine* engine = engines::find_engine(options.engine);
  auto is_one = [&](const std::string& name) {
    return std::ranges::find(engine->limits.components, name) != engine->limits.components.end();
  };
  if (engine == nullptr || engine->limits.components.empty() || std::ranges::any_of(names, is_one)) return {};
  return engines::refused(engine->title, format("it generates text, and this one consists of {}", join(names, ", ")));
}

}  // namespace argosy
