#include "driver/pt2/export_pt2.h"

#include "backends/pt2/document.h"
#include "backends/pt2/lowering.h"
#include "backends/pt2/writer.h"
#include "base/text.h"
#include "driver/export_hooks.h"
#include "driver/user_rules.h"
#include "io/output.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

// The one name that torch.export.load looks for.
constexpr std::string_view kSingleName = "model";

/// The program with one component, under the name that torch.export.load looks for. Weights that are only this
/// component's own have its name in theirs.
Program single_component(const Program& program, size_t index) {
  Program single = program;
  single.components = {program.components[index]};
  Component& component = single.components.front();
  std::string prefix = component.name + "/";
  for (Weight& weight : single.weights) {
    if (weight.name.starts_with(prefix)) weight.name.replace(0, prefix.size() - 1, kSingleName);
  }
  component.name = kSingleName;
  return single;
}

class Pt2Export final : public Export {
 public:
  Pt2Export(ExportDestination destination, const Checkpoint* checkpoint, JsonDocument capture)
      : Export(std::move(destination), checkpoint, capture.root()), manifest_(std::move(capture)) {}

  Status lay_out(const Program& program) {
    note_fixed_dims(program);
    if (!destination_.is_folder) {
      std::vector<std::string> names;
      for (const Component& component : program.components) names.push_back(component.name);
      std::string file = destination_.path.filename().string();
      if (names.size() > 1) return add(program, std::move(file), std::move(names));
      return add(single_component(program, 0), std::move(file), std::move(names));
    }
    for (size_t i = 0; i < program.components.size(); ++i) {
      std::string name = program.components[i].name;
      ARGOSY_TRY_STATUS(add(single_component(program, i), format("{}.pt2", name), {name}));
    }
    return {};
  }

 protected:
  Status write_into(const fs::path& folder, const ExportWriteOptions& options,
                    const std::function<void(uint64_t)>& progress) const override {
    TensorWriteOptions stream;
    stream.scratch_bytes = options.scratch_bytes;
    stream.threads = options.threads;
    uint64_t before = 0;
    if (progress) stream.progress = [&](uint64_t done) { progress(before + done); };
    for (size_t i = 0; i < files_.size(); ++i) {
      ARGOSY_TRY(OutputFile file, OutputFile::create(folder / files_[i].file, Overwrite::kRefuse));
      Pt2Document document = documents_[i];  // cheap: texts and recipes
      ManifestOptions about;
      about.format = "argosy-pt2";
      if (files_[i].components.size() == 1) about.component = files_[i].components[0];
      about.check = options.check;
      document.add_extra(kExportManifest, export_manifest(manifest_.root(), about));
      ARGOSY_TRY_STATUS(write_pt2_document(document, file, stream));
      ARGOSY_TRY_STATUS(file.commit());
      before += files_[i].bytes;
    }
    return {};
  }

 private:
  Status add(const Program& program, std::string file, std::vector<std::string> components) {
    Pt2DocumentOptions options;
    options.root = fs::path(file).stem().string();
    ARGOSY_TRY(Pt2Document document, build_pt2_document(program, options));
    files_.push_back({std::move(file), std::move(components), document.content_bytes()});
    documents_.push_back(std::move(document));
    return {};
  }

  JsonDocument manifest_;               // of the capture
  std::vector<Pt2Document> documents_;  // one for each file
};

}  // namespace

Result<std::unique_ptr<Export>> prepare_pt2(const ExportInput& input, const ExportDestination& destination,
                                            const Pt2Options& options, Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(input.capture));
  auto prepared = std::make_unique<Pt2Export>(destination, input.checkpoint, std::move(manifest));
  ARGOSY_TRY(Program program, read_export_program(input, diagnostics));
  ARGOSY_TRY_STATUS(run_export_passes(after_rules(options.rules, pt2_pipeline()), program, options.hooks, diagnostics));
  ARGOSY_TRY_STATUS(prepared->lay_out(program));
  return prepared;
}

}  // namespace argosy
