#include "driver/onnx/bundle_export.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "backends/onnx/cached_attention.h"
#include "backends/onnx/layout.h"
#include "backends/onnx/quantize.h"
#include "base/check.h"
#include "base/text.h"
#include "border/border.h"
#include "driver/earlier_bundle.h"
#include "driver/export_hooks.h"
#include "driver/onnx/kept_graphs.h"
#include "driver/onnx/lower_onnx.h"
#include "driver/validate_export.h"
#include "driver/variants.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

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

void add_once(std::vector<std::string>& notes, const std::string& note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

}  // namespace

Status OnnxExport::build(Program program, const OnnxOptions& options, const ExportInput& input,
                         Diagnostics& diagnostics) {
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
  for (OnnxPart& part : parts_) describe(part, {});
  return {};
}

Status OnnxExport::complete(std::vector<std::unique_ptr<OnnxExport>> further, Diagnostics& diagnostics) {
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

std::vector<std::string> OnnxExport::summary() const {
  std::vector<std::string> lines;
  for (const OnnxExport* each : variants()) {
    std::string_view name = further_.empty() ? "" : std::string_view(each->name_);
    auto add = [&](const std::string& line) { lines.push_back(name.empty() ? line : format("{}: {}", name, line)); };
    for (const std::string& line : quantized_lines(each->quantized_)) add(line);
    std::ranges::for_each(each->adapters_.summary(), add);
    for (const OnnxPart& part : each->parts_) std::ranges::for_each(half_lines(part.bundle.models()), add);
  }
  return lines;
}

std::vector<const OnnxExport*> OnnxExport::variants() const {
  std::vector<const OnnxExport*> all = {this};
  for (const auto& each : further_) all.push_back(each.get());
  return all;
}

void OnnxExport::name_variants(std::vector<std::string>& options) const {
  std::vector<std::string> names;
  std::vector<std::span<const std::string>> given;
  for (const OnnxExport* each : variants()) {
    names.push_back(each->name_);
    given.emplace_back(each->source_->options);
  }
  options = options_of_variants(names, given);
}

Status OnnxExport::check_kept(const OnnxExport& whole) const {
  if (kept_.empty()) return {};
  ARGOSY_TRY(JsonDocument earlier, read_bundle_manifest(kept_));
  ARGOSY_TRY(JsonDocument made, JsonDocument::parse_owned(whole.bundle_manifest({}), kBundleManifest));
  ARGOSY_TRY_STATUS(check_same_making(earlier.root(), made.root(), kept_));
  for (OnnxPart part : parts_) {
    ARGOSY_TRY(ExportCheck check, check_in_graph(kept_ / part.folder / part.bundle.models()[0].file));
    describe(part, check);
    ARGOSY_TRY_STATUS(check_kept_graphs(part.bundle, kept_ / part.folder));
  }
  return {};
}

Status OnnxExport::plan(const Program& program, const OnnxOptions& options, const ExportInput& input) {
  engine_ = engines::find_engine(options.engine);
  if (engine_ == nullptr)
    return fail(ErrorCode::kInvalidInput, format("there is no engine {}", quoted(options.engine)));
  own_engine_ = options.own_engine;
  ARGOSY_TRY(device_, device_of(options));
  if (destination_.is_folder) {
    ARGOSY_TRY(source_, engines::read_source_model(input.model, manifest_.root()));
    source_->device = device_;
    source_->scheme = onnx::scheme_of(options.lowering.quantization);
    source_->is_mixed_half = options.lowering.half != onnx::HalfMode::kNone;
    source_->options = input.options;
    if (own_engine_) source_->graph_files = own_engine_->graphs;
    ARGOSY_TRY(plan_, engine_->plan(*source_));
    return {};
  }
  std::string file = destination_.path.filename().string();
  ARGOSY_TRY_STATUS(check_one_model(destination_, options, program.components.size()));
  plan_.graphs.push_back({file, program.components[0].name, {}, file + ".data"});
  return {};
}

void OnnxExport::note_device(const OnnxOptions& options) {
  if (device_->evidence.empty()) return;
  plan_.notes.push_back(format("for {}, but checks ran on the CPU: {}", device_->title, device_->evidence));
  if (!engine_->limits.has_runtime_ops || options.lowering.optimize != onnx::Optimize::kEngine)
    plan_.notes.emplace_back("the graphs have ops of ONNX alone, so they are the same for all devices");
}

OnnxOptions OnnxExport::with_engine_ops(OnnxOptions options) const {
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

Status OnnxExport::lay_out(std::vector<onnx::NamedModel> graphs, const OnnxOptions& options,
                           const Checkpoint& checkpoint) {
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
    OnnxPart part{key.first, {}, {}};
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

Status OnnxExport::list_files() {
  ARGOSY_TRY_STATUS(list_graph_files(files_));
  for (const auto& each : further_) ARGOSY_TRY_STATUS(each->list_graph_files(files_));
  if (!destination_.is_folder) return {};
  ARGOSY_TRY(companions_, list_companions(*source_, plan_));
  files_.insert(files_.end(), companions_.files.begin(), companions_.files.end());
  return {};
}

Status OnnxExport::list_graph_files(std::vector<ExportFile>& files) {
  const size_t before = files.size();
  for (const OnnxPart& part : parts_) {
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

}  // namespace argosy
