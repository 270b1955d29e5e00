#include "driver/onnx/export_onnx.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "backends/onnx/cached_attention.h"
#include "backends/onnx/layout.h"
#include "backends/onnx/quantize.h"
#include "base/check.h"
#include "base/text.h"
#include "border/border.h"
#include "driver/bundle_companions.h"
#include "driver/earlier_bundle.h"
#include "driver/export_hooks.h"
#include "driver/onnx/adapters_apart.h"
#include "driver/onnx/kept_graphs.h"
#include "driver/onnx/lower_onnx.h"
#include "driver/quality_picture.h"
#include "driver/validate_export.h"
#include "driver/variant_folders.h"
#include "driver/variants.h"
#include "engines/card.h"
#include "engines/device.h"
#include "engines/engine.h"
#include "engines/lint.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownOverflows = 20;

/// Graphs that share one data file, and the folder of the bundle that they are in.
struct Part {
  fs::path folder;
  onnx::Bundle bundle;
  std::vector<std::string> components;  // for each graph
};

/// Inputs get the names that they have in the model's code ("past_key_values.0.key"), which torch cannot use.
std::vector<Edit> name_inputs(JsonView capture, const Component& component) {
  std::vector<Edit> edits;
  for (JsonView each : capture.find("components").items()) {
    if (each.find("name").as_string() != component.name) continue;
    for (JsonView input : each.find("inputs").items()) {
      auto name = input.find("name").as_string(), path = input.find("path").as_string();
      const InputSpec* found = name && path ? find_input(component, *name) : nullptr;
      if (found != nullptr && found->value.is_valid())
        edits.emplace_back(RenameInput{std::string(*name), std::string(*path)});
    }
  }
  return edits;
}

class OnnxExport final : public Export {
 public:
  OnnxExport(std::string name, ExportDestination destination, const Checkpoint* checkpoint, JsonDocument capture)
      : Export(std::move(destination), checkpoint, capture.root()),
        name_(std::move(name)),
        manifest_(std::move(capture)) {}

  /// Its files are those of a folder that an earlier export wrote.
  void keep(fs::path folder) { kept_ = std::move(folder); }

  Status build(Program program, const OnnxOptions& options, const ExportInput& input, Diagnostics& diagnostics) {
    note_fixed_dims(program);
    ARGOSY_TRY_STATUS(plan(program, options, input));
    note_device(options);
    ARGOSY_TRY(adapters_, AdaptersApart::find(input));
    ARGOSY_TRY_STATUS(adapters_.check(*engine_, plan_, destination_.is_folder));
    std::vector<BoundGraph> bound;
    for (const engines::GraphPlan& graph : plan_.graphs) {
      const Component* component = program.find_component(graph.component);
      ARGOSY_CHECK(component != nullptr, "a plan with a component that the model lacks: " + graph.component);
      std::vector<Edit> edits = name_inputs(manifest_.root(), *component);
      edits.insert(edits.end(), graph.edits.begin(), graph.edits.end());
      if (options.lowering.optimize == onnx::Optimize::kEngine)
        edits.insert(edits.end(), graph.further_edits.begin(), graph.further_edits.end());
      adapters_.add_edit(edits);
      bound.push_back({graph.file, graph.component, std::move(edits)});
    }
    ARGOSY_TRY(std::vector<onnx::NamedModel> graphs,
               lower_to_onnx(program, std::move(bound), with_engine_ops(options), diagnostics));
    quantized_ = quantized_weights(program);
    ARGOSY_TRY_STATUS(adapters_.complete(graphs[0].model));
    if (options.hooks != nullptr && options.hooks->on_onnx_graphs)
      ARGOSY_TRY_STATUS(options.hooks->on_onnx_graphs(graphs));
    ARGOSY_TRY_STATUS(lay_out(std::move(graphs), options, *input.checkpoint));
    for (Part& part : parts_) describe(part, {});
    return {};
  }

  /// The last step: takes the other variants of the bundle, which were built as this one, and lists all files.
  Status complete(std::vector<std::unique_ptr<OnnxExport>> further, Diagnostics& diagnostics) {
    further_ = std::move(further);
    if (!further_.empty()) name_variants(source_->options);
    if (source_ && engine_->finish != nullptr) {
      std::vector<engines::WrittenGraph> graphs;
      for (const OnnxExport* each : variants()) std::ranges::copy(each->laid_out_, std::back_inserter(graphs));
      ARGOSY_TRY_STATUS(engine_->finish(*source_, graphs, plan_));
    }
    ARGOSY_TRY_STATUS(list_files());
    for (const OnnxExport* each : variants()) {
      ARGOSY_TRY_STATUS(each->check_kept(*this));
      for (const std::string& note : each->plan_.notes) add_once(diagnostics.notes, note);
    }
    for (const std::string& note : companions_.notes) diagnostics.notes.push_back(note);
    return {};
  }

  /// What is stored in few bits, and what computes in f16.
  std::vector<std::string> summary() const override {
    std::vector<std::string> lines;
    for (const OnnxExport* each : variants()) {
      std::string_view name = further_.empty() ? "" : std::string_view(each->name_);
      auto add = [&](const std::string& line) { lines.push_back(name.empty() ? line : format("{}: {}", name, line)); };
      for (const std::string& line : quantized_lines(each->quantized_)) add(line);
      std::ranges::for_each(each->adapters_.summary(), add);
      for (const Part& part : each->parts_) std::ranges::for_each(half_lines(part.bundle.models()), add);
    }
    return lines;
  }

  Status write_into(const fs::path& folder, const ExportWriteOptions& options,
                    const std::function<void(uint64_t)>& progress) const override {
    std::vector<Part> parts;
    const std::vector<const OnnxExport*> all = variants();
    for (size_t i = 0; i < all.size(); ++i) {
      for (Part part : all[i]->parts_) {  // a copy is cheap: graphs and recipes
        if (!all[i]->kept_.empty()) {
          ARGOSY_TRY_STATUS(keep_graphs(part.bundle, all[i]->kept_ / part.folder, folder / part.folder));
          continue;
        }
        all[i]->describe(part, options.check_of(i));
        ARGOSY_TRY_STATUS(make_folder(folder / part.folder));
        parts.push_back(std::move(part));
      }
    }
    std::vector<std::pair<const onnx::Bundle*, fs::path>> bundles;
    for (const Part& part : parts) bundles.emplace_back(&part.bundle, folder / part.folder);
    TensorWriteOptions stream;
    stream.scratch_bytes = options.scratch_bytes;
    stream.threads = options.threads;
    stream.progress = progress;
    ARGOSY_TRY(std::vector<onnx::Overflow> overflows, onnx::write_bundles(bundles, stream));
    ARGOSY_TRY_STATUS(adapters_.write(folder, options.scratch_bytes));
    if (destination_.is_folder) {
      ARGOSY_TRY_STATUS(write_companions(folder, *source_, plan_, companions_));
      ARGOSY_TRY_STATUS(rewrite_checks(folder, options));
    }
    if (options.on_warning) {
      warn_of(overflows, options);
      if (destination_.is_folder) ARGOSY_TRY_STATUS(warn_of_findings(folder, options));
    }
    return {};
  }

  Status rewrite_checks(const fs::path& folder, const ExportWriteOptions& options) const override {
    if (!destination_.is_folder) return {};
    std::vector<std::string> notes = limits_;
    std::ranges::copy(summary(), std::back_inserter(notes));
    std::ranges::copy(twice_written(), std::back_inserter(notes));
    engines::BundlePlan whole = plan_;
    for (size_t i = 0; i < further_.size(); ++i) {
      std::ranges::copy(further_[i]->plan_.graphs, std::back_inserter(whole.graphs));
      notes.push_back(format("check of {}: {}", further_[i]->name_, options.check_of(i + 1).text()));
    }
    return write_descriptions(folder, *source_, *engine_, whole, options.check, notes, bundle_manifest(options),
                              picture(options));
  }

 private:
  /// This one, then the others of the bundle.
  std::vector<const OnnxExport*> variants() const {
    std::vector<const OnnxExport*> all = {this};
    for (const auto& each : further_) all.push_back(each.get());
    return all;
  }

  /// Puts all variants where the options of this one are.
  void name_variants(std::vector<std::string>& options) const {
    std::vector<std::string> names;
    std::vector<std::span<const std::string>> given;
    for (const OnnxExport* each : variants()) {
      names.push_back(each->name_);
      given.emplace_back(each->source_->options);
    }
    options = options_of_variants(names, given);
  }

  /// Refuses files that this export would not write so. `whole` is the bundle that has them now.
  Status check_kept(const OnnxExport& whole) const {
    if (kept_.empty()) return {};
    ARGOSY_TRY(JsonDocument earlier, read_bundle_manifest(kept_));
    ARGOSY_TRY(JsonDocument made, JsonDocument::parse_owned(whole.bundle_manifest({}), kBundleManifest));
    ARGOSY_TRY_STATUS(check_same_making(earlier.root(), made.root(), kept_));
    for (Part part : parts_) {
      ARGOSY_TRY(ExportCheck check, check_in_graph(kept_ / part.folder / part.bundle.models()[0].file));
      describe(part, check);
      ARGOSY_TRY_STATUS(check_kept_graphs(part.bundle, kept_ / part.folder));
    }
    return {};
  }

  static void add_once(std::vector<std::string>& notes, const std::string& note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
  }

  /// Which graphs and files there will be.
  Status plan(const Program& program, const OnnxOptions& options, const ExportInput& input) {
    engine_ = engines::find_engine(options.engine);
    if (engine_ == nullptr)
      return fail(ErrorCode::kInvalidInput, format("there is no engine {}", quoted(options.engine)));
    ARGOSY_TRY(device_, device_of(options));
    if (destination_.is_folder) {
      ARGOSY_TRY(source_, engines::read_source_model(input.model, manifest_.root()));
      source_->device = device_;
      source_->scheme = onnx::scheme_of(options.lowering.quantization);
      source_->is_mixed_half = options.lowering.half != onnx::HalfMode::kNone;
      source_->options = input.options;
      ARGOSY_TRY(plan_, engine_->plan(*source_));
      return {};
    }
    std::string file = destination_.path.filename().string();
    ARGOSY_TRY_STATUS(check_one_model(destination_, options, program.components.size()));
    plan_.graphs.push_back({file, program.components[0].name, {}, file + ".data"});
    return {};
  }

  /// What is known of the device, for those who use the bundle.
  void note_device(const OnnxOptions& options) {
    if (device_->evidence.empty()) return;
    plan_.notes.push_back(format("for {}, but checks ran on the CPU: {}", device_->title, device_->evidence));
    if (!engine_->limits.has_runtime_ops || options.lowering.optimize != onnx::Optimize::kEngine)
      plan_.notes.emplace_back("the graphs have ops of ONNX alone, so they are the same for all devices");
  }

  OnnxOptions with_engine_ops(OnnxOptions options) const {
    bool uses_them = options.lowering.optimize == onnx::Optimize::kEngine;
    options.lowering.runtime_ops = uses_them && engine_->limits.has_runtime_ops ? device_->ops : RuntimeOps();
    options.lowering.pads_at_end = uses_them && engine_->limits.pads_at_end;
    options.lowering.longest_text = device_->turns_in_attention ? plan_.longest_text : 0;
    options.lowering.packs_attention = device_->packs_attention;
    onnx::Quantization& how = options.lowering.quantization;
    const bool is_given = how.accuracy_level != onnx::kDevicesAccuracy;
    // Rounding float16 to 8 bits leaves too little of it to compare with the model.
    how.half_accuracy_level = is_given ? how.accuracy_level : 0;
    if (!is_given) how.accuracy_level = device_->rounds_activations ? 4 : 0;
    options.lowering.joins_weights = options.weights != onnx::WeightsMode::kLink;
    return options;
  }

  /// Graphs of one folder and one data file are a part.
  Status lay_out(std::vector<onnx::NamedModel> graphs, const OnnxOptions& options, const Checkpoint& checkpoint) {
    std::vector<std::pair<fs::path, std::string>> order;  // folder and data file
    std::map<std::pair<fs::path, std::string>, std::vector<size_t>> groups;
    for (const onnx::NamedModel& graph : graphs)
      laid_out_.push_back({graph.file, 0, onnx::count_kept_caches(graph.model)});
    for (size_t i = 0; i < graphs.size(); ++i) {
      std::pair key(fs::path(graphs[i].file).parent_path(), plan_.graphs[i].data_file);
      if (groups[key].empty()) order.push_back(key);
      groups[key].push_back(i);
    }
    for (const auto& key : order) {
      Part part{key.first, {}, {}};
      std::vector<onnx::NamedModel> models;
      for (size_t i : groups[key]) {
        part.components.push_back(plan_.graphs[i].component);
        models.push_back({fs::path(graphs[i].file).filename(), std::move(graphs[i].model)});
      }
      onnx::LayoutOptions layout;
      layout.weights = options.weights;
      layout.data_file = key.second;
      layout.max_data_bytes = plan_.graphs[groups[key][0]].max_data_bytes;
      if (layout.max_data_bytes != 0 && layout.weights == onnx::WeightsMode::kLink) {
        return fail(ErrorCode::kInvalidInput, format("{} wants data files of its own", engine_->title),
                    "leave out --weights link");
      }
      if (!destination_.is_folder) layout.link_prefix = destination_.path.filename().string() + ".";
      for (const fs::path& file : checkpoint.files()) layout.linkable.insert(file.native());
      ARGOSY_TRY(part.bundle, onnx::Bundle::build(std::move(models), layout));
      for (size_t i : groups[key]) laid_out_[i].data_files = part.bundle.layout().data_files.size();
      parts_.push_back(std::move(part));
    }
    return {};
  }

  /// The metadata of a graph. Nothing of this machine.
  void describe(Part& part, const ExportCheck& check) const {
    for (size_t i = 0; i < part.components.size(); ++i) {
      ManifestOptions about;
      about.format = kFormat;
      about.component = part.components[i];
      if (device_->name != engines::kUsualDevice) about.device = device_->name;
      about.check = check;
      about.quantized = quantized_;
      part.bundle.set_metadata(i, std::string(kOnnxManifestKey), export_manifest(manifest_.root(), about));
      auto add = [&](std::string_view key, JsonView value) {
        if (auto text = value.as_string()) part.bundle.set_metadata(i, format("argosy.{}", key), std::string(*text));
      };
      part.bundle.set_metadata(i, "argosy.component", part.components[i]);
      JsonView root = manifest_.root();
      for (std::string_view key : {"model_class", "task", "configuration_hash"}) add(key, root.find(key));
      for (std::string_view key : {"torch", "transformers"}) add(key, root.find("versions").find(key));
    }
  }

  Status list_files() {
    ARGOSY_TRY_STATUS(list_graph_files(files_));
    for (const auto& each : further_) ARGOSY_TRY_STATUS(each->list_graph_files(files_));
    if (!destination_.is_folder) return {};
    ARGOSY_TRY(companions_, list_companions(*source_, plan_));
    files_.insert(files_.end(), companions_.files.begin(), companions_.files.end());
    return {};
  }

  /// Adds those of this variant.
  Status list_graph_files(std::vector<ExportFile>& files) {
    const size_t before = files.size();
    for (const Part& part : parts_) {
      auto name = [&](const std::string& file) { return (part.folder / file).string(); };
      for (size_t i = 0; i < part.components.size(); ++i) {
        ARGOSY_TRY(onnx::EncodedModel model, part.bundle.encoded(i));
        files.push_back({name(part.bundle.models()[i].file), {part.components[i]}, model.size()});
      }
      const onnx::Layout& layout = part.bundle.layout();
      for (const onnx::Layout::DataFile& file : layout.data_files) files.push_back({name(file.name), {}, file.bytes});
      for (const onnx::Layout::LinkedFile& file : layout.linked) files.push_back({name(file.name), {}, 0, file.bytes});
    }
    adapters_.list_files(files);
    for (size_t i = before; i < files.size(); ++i) {
      graph_bytes_ += files[i].bytes + files[i].linked_bytes;
      if (!kept_.empty()) files[i].linked_bytes += std::exchange(files[i].bytes, 0);
    }
    return {};
  }

  static Status make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    return error ? Status(fail(system_error("create", folder, error.value()))) : Status();
  }

  /// Weights that are in several data files, as a line.
  std::vector<std::string> twice_written() const {
    std::set<std::string> seen;
    uint64_t bytes = 0;
    for (const OnnxExport* variant : variants()) {
      for (const Part& part : variant->parts_) {
        for (const onnx::Layout::DataFile& file : part.bundle.layout().data_files) {
          for (const onnx::Layout::Tensor& tensor : file.tensors) {
            if (!seen.insert(tensor.source->recipe()).second) bytes += static_cast<uint64_t>(tensor.source->bytes());
          }
        }
      }
    }
    if (bytes == 0) return {};
    return {format("{} of weights are written more than once: the engine wants a data file for each graph",
                   format_bytes(bytes))};
  }

  std::vector<ManifestGraph> manifest_graphs() const {
    std::vector<ManifestGraph> graphs;
    for (const engines::GraphPlan& graph : plan_.graphs) {
      ManifestGraph& entry = graphs.emplace_back(graph.file, graph.component);
      for (const Edit& edit : graph.edits) {
        if (const auto* input = std::get_if<RenameInput>(&edit)) entry.renamed.emplace_back(input->from, input->to);
        if (const auto* output = std::get_if<RenameOutput>(&edit)) entry.renamed.emplace_back(output->from, output->to);
      }
    }
    return graphs;
  }

  /// Of several variants that were measured; else empty.
  std::string picture(const ExportWriteOptions& options) const {
    std::vector<MeasuredVariant> measured;
    for (size_t i = 0; i <= further_.size(); ++i) {
      const ExportCheck& check = options.check_of(i);
      measured.push_back({variants()[i]->name_, variants()[i]->graph_bytes_, check.kind == "full", check.quality});
    }
    return quality_picture(measured);
  }

  std::string bundle_manifest(const ExportWriteOptions& options) const {
    ManifestOptions about;
    about.format = kFormat;
    about.check = options.check;
    about.quantized = quantized_;
    about.engine = engine_->name;
    about.adapters = adapters_.manifest();
    about.source = source_->name;
    about.commit = source_->commit;
    about.options = source_->options;
    if (device_->name != engines::kUsualDevice) about.device = device_->name;
    about.graphs = manifest_graphs();
    const std::vector<const OnnxExport*> all = variants();
    for (size_t i = 0; all.size() > 1 && i < all.size(); ++i) {
      const OnnxExport& each = *all[i];
      about.variants.push_back({each.name_, each.manifest_graphs(), each.quantized_, options.check_of(i)});
    }
    for (const ExportFile& file : files_) about.files.push_back(file.file);
    about.files.emplace_back(engines::kCardFile);
    if (!picture(options).empty()) about.files.emplace_back(kPictureFile);
    return export_manifest(manifest_.root(), about);
  }

  /// Warns of what the engine will fail on: the model's own files may lack something, or contradict each other.
  Status warn_of_findings(const fs::path& folder, const ExportWriteOptions& options) const {
    ARGOSY_TRY(engines::LintReport report, engines::lint(folder, engine_->name));
    for (const engines::Finding& finding : report.findings)
      options.on_warning(
          format("{}{}; {}", finding.file.empty() ? "" : finding.file + ": ", finding.what, finding.hint));
    return {};
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

  std::string name_;       // of the variant, if there are several
  JsonDocument manifest_;  // of the capture
  const engines::Engine* engine_ = nullptr;
  const engines::Device* device_ = nullptr;
  std::optional<engines::SourceModel> source_;  // of a folder
  engines::BundlePlan plan_;
  std::vector<Part> parts_;
  std::vector<engines::WrittenGraph> laid_out_;
  std::vector<std::unique_ptr<OnnxExport>> further_;  // other variants, of the same bundle
  BundleCompanions companions_;
  std::vector<QuantizedWeight> quantized_;
  AdaptersApart adapters_;
  fs::path kept_;             // a folder that has them already; empty: they are to be written
  uint64_t graph_bytes_ = 0;  // of this variant's graphs and weights
};

/// Whether all variants are in one bundle.
bool is_one_bundle(const OnnxVariant& variant) {
  const engines::Engine* engine = engines::find_engine(variant.options.engine);
  return engine != nullptr && engine->limits.has_variants;
}

/// All but the last step.
Result<std::unique_ptr<OnnxExport>> built(const OnnxVariant& variant, const ExportDestination& destination,
                                          Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(variant.input.capture));
  ARGOSY_TRY(Program program, read_export_program(variant.input, diagnostics));
  auto made = std::make_unique<OnnxExport>(variant.name, destination, variant.input.checkpoint, std::move(manifest));
  if (variant.is_kept) made->keep(is_one_bundle(variant) ? destination.path : destination.path / variant.name);
  ARGOSY_TRY_STATUS(made->build(std::move(program), variant.options, variant.input, diagnostics));
  return made;
}

}  // namespace

Result<std::unique_ptr<Export>> prepare_onnx(const ExportInput& input, const ExportDestination& destination,
                                             const OnnxOptions& options, Diagnostics& diagnostics) {
  ARGOSY_TRY(std::unique_ptr<OnnxExport> made, built({"", input, options}, destination, diagnostics));
  ARGOSY_TRY_STATUS(made->complete({}, diagnostics));
  return made;
}

Result<std::unique_ptr<Export>> prepare_onnx_variants(std::vector<OnnxVariant> variants,
                                                      const ExportDestination& destination, Diagnostics& diagnostics) {
  ARGOSY_CHECK(!variants.empty(), "an export of no variant");
  ARGOSY_CHECK(destination.is_folder, "several variants for one file, which validate_export() refuses");
  const bool is_whole = is_one_bundle(variants[0]);
  std::vector<std::unique_ptr<OnnxExport>> made;
  for (const OnnxVariant& variant : variants) {
    ARGOSY_TRY(std::unique_ptr<OnnxExport> each, built(variant, destination, diagnostics));
    if (!is_whole) ARGOSY_TRY_STATUS(each->complete({}, diagnostics));
    made.push_back(std::move(each));
  }
  if (is_whole) {
    std::unique_ptr<OnnxExport> first = std::move(made[0]);
    made.erase(made.begin());
    ARGOSY_TRY_STATUS(first->complete(std::move(made), diagnostics));
    return first;
  }
  std::vector<VariantFolder> folders;
  for (size_t i = 0; i < made.size(); ++i)
    folders.push_back({variants[i].name, std::move(made[i]), variants[i].is_kept});
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(variants[0].input.capture));
  return variant_folders(std::move(folders), destination, variants[0].input.checkpoint, manifest.root());
}

}  // namespace argosy
