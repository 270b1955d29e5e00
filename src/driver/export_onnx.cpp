#include "driver/export_onnx.h"

#include "backends/onnx/layout.h"
#include "backends/onnx/lowering.h"
#include "base/text.h"
#include "driver/run_passes.h"
#include "driver/weights_as_inputs.h"
#include "io/output.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownOverflows = 20;

bool is_shape_only(const TensorSource& source) { return source.recipe().starts_with("shape_only("); }

Status check_opset(const OnnxOptions& options) {
  int opset = options.lowering.opset;
  if (opset >= onnx::kMinOpset && opset <= onnx::kMaxOpset) return {};
  return fail(ErrorCode::kInvalidInput, format("opset {} is not written", opset),
              format("ask for one of {} to {}", onnx::kMinOpset, onnx::kMaxOpset));
}

class OnnxExport final : public Export {
 public:
  OnnxExport(ExportDestination destination, JsonDocument capture)
      : Export(std::move(destination)), manifest_(std::move(capture)) {
    model_class_ = manifest_.root().find("model_class").as_string().value_or("");
  }

  Status build(Program program, const OnnxOptions& options, const Checkpoint& checkpoint, Diagnostics& diagnostics) {
    note_fixed_dims(program);
    std::string single = destination_.path.filename().string();
    if (!destination_.is_folder && program.components.size() != 1) {
      return fail(ErrorCode::kInvalidInput,
                  format("{} is to be one model, but there are {}", quoted(single), program.components.size()),
                  "give a name that does not end in .onnx, for a folder of models");
    }
    std::vector<std::string> names;
    for (const Component& component : program.components) names.push_back(component.name);
    ARGOSY_TRY(std::vector<onnx::NamedModel> models, lower_to_onnx(std::move(program), options, diagnostics));
    onnx::LayoutOptions layout;
    layout.weights = options.weights;
    if (!destination_.is_folder) {
      models[0].file = single;
      layout.data_file = single + ".data";
      layout.link_prefix = single + ".";
    }
    for (const fs::path& file : checkpoint.files()) layout.linkable.insert(file.native());
    ARGOSY_TRY(bundle_, onnx::Bundle::build(std::move(models), layout));
    for (size_t i = 0; i < names.size(); ++i) describe(i, names[i], {});
    return list_files(names);
  }

 protected:
  Status write_into(const fs::path& folder, const ExportWriteOptions& options,
                    const std::function<void(uint64_t)>& progress) const override {
    onnx::Bundle bundle = bundle_;  // cheap: graphs and recipes
    for (size_t i = 0; i < bundle.models().size(); ++i) describe(bundle, i, files_[i].components[0], options.check);
    TensorWriteOptions stream;
    stream.scratch_bytes = options.scratch_bytes;
    stream.threads = options.threads;
    stream.progress = progress;
    ARGOSY_TRY(std::vector<onnx::Overflow> overflows, bundle.write(folder, stream));
    if (destination_.is_folder) ARGOSY_TRY_STATUS(write_manifest(folder, options.check));
    if (options.on_warning) warn_of(overflows, options);
    return {};
  }

 private:
  void describe(size_t index, const std::string& component, const ExportCheck& check) {
    describe(bundle_, index, component, check);
  }

  /// What a model says of itself. Nothing of this machine.
  void describe(onnx::Bundle& bundle, size_t index, const std::string& component, const ExportCheck& check) const {
    ManifestOptions about;
    about.format = kFormat;
    about.component = component;
    about.check = check;
    bundle.set_metadata(index, std::string(kOnnxManifestKey), export_manifest(manifest_.root(), about));
    auto add = [&](std::string_view key, JsonView value) {
      if (auto text = value.as_string()) bundle.set_metadata(index, format("argosy.{}", key), std::string(*text));
    };
    bundle.set_metadata(index, "argosy.component", component);
    JsonView root = manifest_.root();
    for (std::string_view key : {"model_class", "task", "configuration_hash"}) add(key, root.find(key));
    for (std::string_view key : {"torch", "transformers"}) add(key, root.find("versions").find(key));
  }

  Status list_files(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      ARGOSY_TRY(onnx::EncodedModel model, bundle_.encoded(i));
      files_.push_back({bundle_.models()[i].file, {names[i]}, model.size()});
    }
    const onnx::Layout& layout = bundle_.layout();
    if (!layout.tensors.empty()) files_.push_back({layout.data_file, {}, layout.data_bytes});
    for (const onnx::Layout::LinkedFile& file : layout.linked) files_.push_back({file.name, {}, 0, file.bytes});
    return {};
  }

  Status write_manifest(const fs::path& folder, const ExportCheck& check) const {
    ManifestOptions about;
    about.format = kFormat;
    about.check = check;
    for (const ExportFile& file : files_) about.files.push_back(file.file);
    ARGOSY_TRY(OutputFile file, OutputFile::create(folder / kExportManifest, Overwrite::kRefuse));
    ARGOSY_TRY_STATUS(file.write(export_manifest(manifest_.root(), about)));
    return file.commit();
  }

  static void warn_of(const std::vector<onnx::Overflow>& overflows, const ExportWriteOptions& options) {
    for (size_t i = 0; i < overflows.size() && i < kShownOverflows; ++i) {
      options.on_warning(format("{} of {} are too large for float16 and became infinite",
                                overflows[i].values == 1 ? "1 value" : format("{} values", overflows[i].values),
                                overflows[i].tensor));
    }
    if (overflows.size() > kShownOverflows)
      options.on_warning(format("and so did values of {} more tensors", overflows.size() - kShownOverflows));
  }

  static constexpr std::string_view kFormat = "argosy-onnx";

  JsonDocument manifest_;  // of the capture
  onnx::Bundle bundle_;
};

}  // namespace

Result<std::vector<onnx::NamedModel>> lower_to_onnx(Program program, const OnnxOptions& options,
                                                    Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_opset(options));
  PassContext context{diagnostics};
  ARGOSY_TRY([[maybe_unused]] bool has_changed,
             verify_and_run(onnx::onnx_pipeline(options.lowering), program, context, {}));
  ARGOSY_TRY_STATUS(verify_input(program, diagnostics));
  std::vector<onnx::NamedModel> models;
  Status status;  // the first error; those of later components are in the diagnostics
  for (const Component& component : program.components) {
    auto model = onnx::translate(program, component, options.lowering, diagnostics);
    if (!model) {
      if (status) status = fail(std::move(model.error()));
      continue;
    }
    if (options.lowering.optimize) ARGOSY_TRY_STATUS(onnx::optimize(*model));
    if (options.missing_weights_as_inputs) onnx::make_inputs(*model, is_shape_only, onnx::StoredValue::kDropped);
    models.push_back({format("{}.onnx", component.name), *std::move(model)});
  }
  if (!status) return fail(std::move(status.error()));
  return models;
}

Result<std::unique_ptr<Export>> prepare_onnx(const ExportInput& input, const ExportDestination& destination,
                                             const OnnxOptions& options, Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(input.capture));
  ARGOSY_TRY(Program program, read_export_program(input, diagnostics));
  auto prepared = std::make_unique<OnnxExport>(destination, std::move(manifest));
  ARGOSY_TRY_STATUS(prepared->build(std::move(program), options, *input.checkpoint, diagnostics));
  return prepared;
}

Result<std::string> onnx_model_bytes(Program program, const OnnxOptions& options, Diagnostics& diagnostics) {
  if (program.components.size() != 1) {
    return fail(ErrorCode::kInvalidInput,
                format("one component is to become a model, and there are {}", program.components.size()));
  }
  ARGOSY_TRY(std::vector<onnx::NamedModel> models, lower_to_onnx(std::move(program), options, diagnostics));
  onnx::LayoutOptions layout;
  layout.weights = onnx::WeightsMode::kEmbed;
  ARGOSY_TRY(onnx::Bundle bundle, onnx::Bundle::build(std::move(models), layout));
  ARGOSY_TRY(onnx::EncodedModel encoded, bundle.encoded(0));
  return onnx::to_bytes(encoded);
}

}  // namespace argosy
