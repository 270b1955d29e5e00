#include "driver/executorch/export_executorch.h"

#include <algorithm>

#include "backends/executorch/writer.h"
#include "base/text.h"
#include "driver/bundle_companions.h"
#include "driver/executorch/lower_executorch.h"
#include "engines/card.h"
#include "engines/engine.h"
#include "engines/executorch/usage.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "argosy-executorch";
constexpr std::string_view kEngine = "executorch";

class ExecutorchExport final : public Export {
 public:
  ExecutorchExport(ExportDestination destination, const Checkpoint* checkpoint, JsonDocument capture)
      : Export(std::move(destination), checkpoint, capture.root()), manifest_(std::move(capture)) {
    program_file_ = destination_.is_folder ? "model.pte" : destination_.path.filename().string();
  }

  Status build(Program program, const ExecutorchOptions& options, const ExportInput& input, Diagnostics& diagnostics) {
    note_fixed_dims(program);
    ARGOSY_TRY(source_, engines::read_source_model(input.model, manifest_.root()));
    source_->options = input.options;
    if (destination_.is_folder) {
      ARGOSY_TRY(plan_, engine_->plan(*source_));
      ARGOSY_TRY(companions_, list_companions(*source_, plan_));
    }
    dtype_ = weights_dtype(program);
    ARGOSY_TRY(document_, lower_to_executorch(std::move(program), options, model_facts(*source_), diagnostics));
    for (const std::string& note : plan_.notes) diagnostics.notes.push_back(note);
    for (const std::string& note : companions_.notes) diagnostics.notes.push_back(note);
    place_ = options.data;
    ARGOSY_TRY(executorch::Layout layout, lay_out({}));
    std::vector<std::string> methods;
    for (const executorch::Method& method : document_.methods) {
      if (!method.instructions.empty()) methods.push_back(method.name);
    }
    files_.push_back({program_file_, std::move(methods), layout.program_bytes()});
    if (layout.data_bytes() != 0) files_.push_back({data_file(), {}, layout.data_bytes()});
    plan_.usage = engines::executorch_usage(facts(layout.data_bytes() != 0));
    files_.insert(files_.end(), companions_.files.begin(), companions_.files.end());
    return {};
  }

  /// What each method takes, and what computes it.
  std::vector<std::string> summary() const override {
    std::vector<std::string> lines = quantized_lines(document_.quantized);
    for (const executorch::Method& method : document_.methods) {
      if (method.instructions.empty()) continue;
      uint64_t delegated = 0;
      for (const executorch::Delegate& delegate : method.delegates) delegated += delegate.multiply_adds;
      auto arena = [&](size_t index) { return format_bytes(index < method.arenas.size() ? method.arenas[index] : 0); };
      std::string line = format("{}: {} of memory for one call, {} for states, {} instructions", method.name, arena(0),
                                arena(1), method.instructions.size());
      if (!method.delegates.empty()) line += format(", {} of them XNNPACK", method.delegates.size());
      if (!method.delegates.empty() && method.multiply_adds != 0) {
        line += format(" with {:.1f} % of the multiply-adds",
                       100.0 * static_cast<double>(delegated) / static_cast<double>(method.multiply_adds));
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

 protected:
  Status write_into(const fs::path& folder, const ExportWriteOptions& options,
                    const std::function<void(uint64_t)>& progress) const override {
    TensorWriteOptions stream;
    stream.scratch_bytes = options.scratch_bytes;
    stream.threads = options.threads;
    stream.sums = false;
    stream.progress = progress;
    ARGOSY_TRY(executorch::Layout layout, lay_out(options.check));
    ARGOSY_TRY_STATUS(layout.write(folder / program_file_, folder / data_file(), stream));
    if (!destination_.is_folder) return {};
    ARGOSY_TRY_STATUS(write_companions(folder, *source_, plan_, companions_));
    return rewrite_checks(folder, options);
  }

  Status rewrite_checks(const fs::path& folder, const ExportWriteOptions& options) const override {
    if (!destination_.is_folder) return {};
    ManifestOptions about = describe(options.check);
    about.engine = kEngine;
    about.source = source_->name;
    about.commit = source_->commit;
    about.options = source_->options;
    for (const ExportFile& file : files_) about.files.push_back(file.file);
    about.files.emplace_back(engines::kCardFile);
    std::vector<std::string> notes = limits_;
    for (std::string& line : quantized_lines(document_.quantized)) notes.push_back(std::move(line));
    return write_descriptions(folder, *source_, *engine_, plan_, options.check, notes,
                              export_manifest(manifest_.root(), about));
  }

 private:
  /// Of the program, for the model card.
  engines::ProgramFacts facts(bool has_data_file) const {
    engines::ProgramFacts facts;
    facts.has_data_file = has_data_file;
    facts.has_tokenizer = source_->has_file("tokenizer.json");
    for (const executorch::Method& method : document_.methods) {
      if (method.instructions.empty()) continue;
      for (const executorch::KernelName& kernel : method.kernels) facts.kernels.push_back(kernel.name);
      engines::ProgramMethod& described = facts.methods.emplace_back(method.name);
      for (size_t i = 0; i < method.inputs.size(); ++i) {
        const auto* tensor = std::get_if<executorch::Tensor>(&method.values[static_cast<size_t>(method.inputs[i])]);
        if (tensor == nullptr) continue;
        std::vector<int64_t> sizes(tensor->sizes.begin(), tensor->sizes.end());
        described.inputs.push_back({method.input_names[i], tensor->dtype, std::move(sizes)});
      }
    }
    return facts;
  }

  std::string data_file() const { return fs::path(program_file_).replace_extension(".ptd").string(); }

  /// The program's manifest is among its data.
  Result<executorch::Layout> lay_out(const ExportCheck& check) const {
    executorch::Document document = document_;  // cheap: texts and recipes
    std::string text = export_manifest(manifest_.root(), describe(check));
    std::vector<std::byte> bytes(text.size());
    std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
    ARGOSY_TRY(TensorSourcePtr source, literal(std::move(bytes), DType::kU8, {static_cast<int64_t>(text.size())}));
    document.data.push_back({std::string(kExportManifest), std::move(source)});
    return executorch::Layout::build(std::move(document), place_);
  }

  ManifestOptions describe(const ExportCheck& check) const {
    ManifestOptions about;
    about.format = kFormat;
    about.check = check;
    about.quantized = document_.quantized;
    about.dtype = dtype_;
    for (const executorch::Method& method : document_.methods) {
      if (method.instructions.empty()) continue;
      ManifestGraph& graph = about.graphs.emplace_back(program_file_, method.component);
      graph.method = method.name;
      graph.inputs = method.input_names;
      graph.outputs = method.output_names;
      for (executorch::ValueIndex input : method.inputs) {
        const auto* tensor = std::get_if<executorch::Tensor>(&method.values[static_cast<size_t>(input)]);
        graph.largest.emplace_back();
        if (tensor != nullptr) graph.largest.back().assign(tensor->sizes.begin(), tensor->sizes.end());
      }
    }
    return about;
  }

  JsonDocument manifest_;  // of the capture
  std::string program_file_;
  std::optional<DType> dtype_;
  executorch::Document document_;
  executorch::DataPlace place_ = executorch::DataPlace::kInside;
  const engines::Engine* engine_ = engines::find_engine(kEngine);
  std::optional<engines::SourceModel> source_;
  engines::BundlePlan plan_;  // of a folder
  BundleCompanions companions_;
};

}  // namespace

Result<std::unique_ptr<Export>> prepare_executorch(const ExportInput& input, const ExportDestination& destination,
                                                   const ExecutorchOptions& options, Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(input.capture));
  ARGOSY_TRY(Program program, read_export_program(input, diagnostics));
  auto prepared = std::make_unique<ExecutorchExport>(destination, input.checkpoint, std::move(manifest));
  ARGOSY_TRY_STATUS(prepared->build(std::move(program), options, input, diagnostics));
  return prepared;
}

}  // namespace argosy
