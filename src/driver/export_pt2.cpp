#include "driver/export_pt2.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "backends/pt2/document.h"
#include "backends/pt2/lowering.h"
#include "backends/pt2/writer.h"
#include "base/text.h"
#include "driver/run_passes.h"
#include "frontends/capture/capture.h"
#include "frontends/read_program.h"
#include "io/file.h"
#include "ir/verify.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

// The one name that torch.export.load looks for.
constexpr std::string_view kSingleName = "model";

Result<Program> lowered_program(const ExportInput& input, Diagnostics& diagnostics) {
  ARGOSY_TRY(ProgramFormat format_of_file, program_format(input.capture));
  if (format_of_file != ProgramFormat::kCapture) {
    return fail(ErrorCode::kInvalidInput, format("{} is not a capture", quoted(input.capture.native(), 1000)),
                "argosy capture makes one");
  }
  ReadOptions options;
  options.diagnostics = &diagnostics;
  ARGOSY_TRY(Program program, read_program(input.capture, options));
  ARGOSY_TRY_STATUS(attach(program, *input.plan, *input.checkpoint));
  PassContext context{diagnostics};
  PipelineHooks hooks;
  hooks.verify_each = true;
  ARGOSY_TRY([[maybe_unused]] bool has_changed, verify_and_run(pt2_pipeline(), program, context, hooks));
  return program;
}

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

}  // namespace

struct Pt2Export::Impl {
  Impl(ExportDestination where, JsonDocument capture) : destination(std::move(where)), manifest(std::move(capture)) {}

  ExportDestination destination;
  JsonDocument manifest;  // of the capture
  std::string model_class;
  std::vector<ExportArchive> archives;
  std::vector<Pt2Document> documents;  // one for each of them
  std::vector<std::string> fixed_dims;

  Status lay_out(const Program& program) {
    if (!destination.is_folder) {
      std::vector<std::string> names;
      for (const Component& component : program.components) names.push_back(component.name);
      std::string file = destination.path.filename().string();
      if (names.size() > 1) return add(program, std::move(file), std::move(names));
      return add(single_component(program, 0), std::move(file), std::move(names));
    }
    for (size_t i = 0; i < program.components.size(); ++i) {
      std::string name = program.components[i].name;
      ARGOSY_TRY_STATUS(add(single_component(program, i), format("{}.pt2", name), {name}));
    }
    return {};
  }

  Status add(const Program& program, std::string file, std::vector<std::string> components) {
    Pt2DocumentOptions options;
    options.root = fs::path(file).stem().string();
    ARGOSY_TRY(Pt2Document document, build_pt2_document(program, options));
    archives.push_back({std::move(file), std::move(components), document.content_bytes()});
    documents.push_back(std::move(document));
    return {};
  }

  uint64_t total_bytes() const {
    uint64_t bytes = 0;
    for (const ExportArchive& archive : archives) bytes += archive.bytes;
    return bytes;
  }

  /// Before gigabytes are written, not after.
  Status check_space() const {
    fs::path folder = fs::absolute(destination.path).parent_path();
    std::error_code failure;
    while (!fs::exists(folder, failure) && folder.has_relative_path()) folder = folder.parent_path();
    fs::space_info space = fs::space(folder, failure);
    if (failure || space.capacity == 0 || space.available >= total_bytes()) return {};
    return fail(
        ErrorCode::kIo,
        format("{} does not fit: it takes {}, and there are {} free in {}", quoted(destination.path.native(), 1000),
               format_bytes(total_bytes()), format_bytes(space.available), quoted(folder.native(), 1000)),
        "free some space or choose another place for the output");
  }

  /// Writes archive i to a file; `done` counts over all of them.
  Status write_archive(size_t i, OutputFile& file, const ExportWriteOptions& options, Progress& state) const {
    Pt2Document document = documents[i];  // cheap: texts and recipes
    std::string_view component;
    if (archives[i].components.size() == 1) component = archives[i].components[0];
    document.add_extra(kExportManifest, export_manifest(manifest.root(), component, options.check));
    TensorWriteOptions stream;
    stream.scratch_bytes = options.scratch_bytes;
    stream.threads = options.threads;
    uint64_t before = state.bytes_done;
    if (options.progress) {
      stream.progress = [&](uint64_t done) {
        state.bytes_done = before + done;
        options.progress(state);
      };
    }
    ARGOSY_TRY_STATUS(write_pt2_document(document, file, stream));
    state.bytes_done = before + archives[i].bytes;
    return {};
  }

  Status write_file(const ExportWriteOptions& options, Progress& state) const {
    if (fs::path folder = destination.path.parent_path(); !folder.empty()) {
      std::error_code failure;
      fs::create_directories(folder, failure);
      if (failure) return fail(system_error("create", folder, failure.value()));
    }
    ARGOSY_TRY(OutputFile file, OutputFile::create(destination.path, Overwrite::kReplace));
    ARGOSY_TRY_STATUS(write_archive(0, file, options, state));
    if (options.before_commit) ARGOSY_TRY_STATUS(options.before_commit(file.path()));
    return file.commit();
  }

  Status write_folder(const ExportWriteOptions& options, Progress& state) const {
    ARGOSY_TRY(OutputFolder folder, OutputFolder::create(destination.path, Overwrite::kReplace));
    for (size_t i = 0; i < archives.size(); ++i) {
      ARGOSY_TRY(OutputFile file, OutputFile::create(folder.path() / archives[i].file, Overwrite::kRefuse));
      ARGOSY_TRY_STATUS(write_archive(i, file, options, state));
      ARGOSY_TRY_STATUS(file.commit());
    }
    if (options.before_commit) ARGOSY_TRY_STATUS(options.before_commit(folder.path()));
    return folder.commit();
  }
};

Pt2Export::Pt2Export(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pt2Export::Pt2Export(Pt2Export&&) noexcept = default;
Pt2Export& Pt2Export::operator=(Pt2Export&&) noexcept = default;
Pt2Export::~Pt2Export() = default;
const std::string& Pt2Export::model_class() const { return impl_->model_class; }
const std::vector<ExportArchive>& Pt2Export::archives() const { return impl_->archives; }
uint64_t Pt2Export::total_bytes() const { return impl_->total_bytes(); }
const std::vector<std::string>& Pt2Export::fixed_dims() const { return impl_->fixed_dims; }

Result<Pt2Export> Pt2Export::prepare(const ExportInput& input, const ExportDestination& destination,
                                     Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(input.capture));
  auto impl = std::make_unique<Impl>(destination, std::move(manifest));
  impl->model_class = impl->manifest.root().find("model_class").as_string().value_or("");
  ARGOSY_TRY(Program program, lowered_program(input, diagnostics));
  for (const Component& component : program.components) {
    for (const SpecializedDim& dim : component.specialized) {
      impl->fixed_dims.push_back(
          format("{}: dim {} of {} is always {}: {}", component.name, dim.dim, dim.input, dim.value, dim.reason));
    }
  }
  ARGOSY_TRY_STATUS(impl->lay_out(program));
  return Pt2Export(std::move(impl));
}

Status Pt2Export::write(const ExportWriteOptions& options) const {
  ARGOSY_TRY_STATUS(impl_->check_space());
  Progress state{format("export {}", impl_->destination.path.filename().string()), 0, total_bytes(), false};
  ARGOSY_TRY_STATUS(impl_->destination.is_folder ? impl_->write_folder(options, state)
                                                 : impl_->write_file(options, state));
  state.is_finished = true;
  if (options.progress) options.progress(state);
  return {};
}

}  // namespace argosy
