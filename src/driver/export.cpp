#include "driver/export.h"

#include <algorithm>

#include "base/text.h"
#include "driver/disk_space.h"
#include "engines/model.h"
#include "engines/sentence_modules.h"
#include "frontends/capture/capture.h"
#include "frontends/capture/unused_tensors.h"
#include "frontends/read_program.h"
#include "io/output.h"

namespace argosy {

namespace fs = std::filesystem;

namespace {

constexpr size_t kShownTensors = 3;

}  // namespace

Result<Program> read_export_program(const ExportInput& input, Diagnostics& diagnostics) {
  ARGOSY_TRY(ProgramFormat format_of_file, program_format(input.capture));
  if (format_of_file != ProgramFormat::kCapture) {
    return fail(ErrorCode::kInvalidInput, format("{} is not a capture", quoted(input.capture.native(), 1000)),
                "argosy capture makes one");
  }
  ReadOptions options;
  options.diagnostics = &diagnostics;
  ARGOSY_TRY(Program program, read_program(input.capture, options));
  ARGOSY_TRY_STATUS(input.plan != nullptr ? attach(program, *input.plan, *input.checkpoint, &diagnostics)
                                          : attach(program, *input.checkpoint, &diagnostics));
  if (input.plan != nullptr)
    diagnostics.notes.insert(diagnostics.notes.end(), input.plan->notes().begin(), input.plan->notes().end());
  std::vector<std::string> unused = unused_tensors(program, input.plan, *input.checkpoint);
  if (!unused.empty()) {
    diagnostics.notes.push_back(format("nothing that is exported uses {} of the checkpoint: {}",
                                       unused.size() == 1 ? "1 tensor" : format("{} tensors", unused.size()),
                                       first_names(unused, kShownTensors)));
  }
  if (std::string modules = engines::left_out_modules(input.model); !modules.empty())
    diagnostics.notes.push_back(std::move(modules));
  return program;
}

Export::Export(ExportDestination destination, const Checkpoint* checkpoint, JsonView capture)
    : destination_(std::move(destination)),
      model_class_(capture.find("model_class").as_string().value_or("")),
      limits_(engines::limit_lines(capture)),
      checkpoint_(checkpoint) {}

uint64_t Export::total_bytes() const {
  uint64_t bytes = 0;
  for (const ExportFile& file : files_) bytes += file.bytes;
  return bytes;
}

void Export::note_fixed_dims(const Program& program) {
  for (const Component& component : program.components) {
    for (const SpecializedDim& dim : component.specialized) {
      fixed_dims_.push_back(
          format("{}: dim {} of {} is always {}: {}", component.name, dim.dim, dim.input, dim.value, dim.reason));
    }
  }
}

void Export::warn_of_non_finite(const ExportWriteOptions& options) const {
  if (checkpoint_ == nullptr || !options.on_warning) return;
  std::vector<std::string> names = checkpoint_->non_finite();
  if (names.empty()) return;
  options.on_warning(format("{} of the checkpoint {} values that are NaN or infinite: {}",
                            names.size() == 1 ? "1 tensor" : format("{} tensors", names.size()),
                            names.size() == 1 ? "has" : "have", first_names(names, kShownTensors)));
}

Status Export::check_file(const std::string& file) const {
  if (file == destination_.path.filename()) return check_replaceable(destination_);
  return check_replaceable_beside(destination_, file);
}

Status Export::write(const ExportWriteOptions& options) const {
  ARGOSY_TRY_STATUS(check_fits(destination_.path, total_bytes()));
  Progress state{format("export {}", destination_.path.filename().string()), 0, total_bytes(), false};
  std::function<void(uint64_t)> progress;
  if (options.progress) {
    progress = [&](uint64_t done) {
      state.bytes_done = std::min(std::max(done, state.bytes_done), state.bytes_total);
      options.progress(state);
    };
  }
  if (!destination_.is_folder) {
    for (const ExportFile& file : files_) ARGOSY_TRY_STATUS(check_file(file.file));
  }
  // Either kind of output has its files under their names before it appears, so that engines can be tried on them.
  auto fill = [&](auto output, const fs::path& written, const MayReplace& may_replace) -> Status {
    ARGOSY_TRY_STATUS(write_into(output.path(), options, progress));
    warn_of_non_finite(options);
    if (options.before_commit) {
      ARGOSY_TRY(std::vector<ExportCheck> checks, options.before_commit(written));
      if (!checks.empty()) {
        ExportWriteOptions checked = options;
        checked.check = checks[0];
        checked.further_checks.assign(checks.begin() + 1, checks.end());
        ARGOSY_TRY_STATUS(rewrite_checks(output.path(), checked));
      }
    }
    return output.commit(may_replace);
  };
  if (destination_.is_folder) {
    ARGOSY_TRY(OutputFolder folder, OutputFolder::create(destination_.path, Overwrite::kReplace));
    fs::path written = folder.path();
    ARGOSY_TRY_STATUS(
        fill(std::move(folder), written, [&](const fs::path& old) { return check_replaceable(destination_, old); }));
  } else {
    ARGOSY_TRY(OutputFiles files, OutputFiles::create(destination_.path, Overwrite::kReplace));
    fs::path written = files.path() / destination_.path.filename();
    ARGOSY_TRY_STATUS(fill(std::move(files), written, [&](const fs::path& old) { return check_file(old.filename()); }));
  }
  state.bytes_done = state.bytes_total;
  state.is_finished = true;
  if (options.progress) options.progress(state);
  return {};
}

}  // namespace argosy
