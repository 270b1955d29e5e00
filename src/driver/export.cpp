#include "driver/export.h"

#include <algorithm>

#include "base/text.h"
#include "driver/disk_space.h"
#include "engines/model.h"
#include "frontends/capture/capture.h"
#include "frontends/read_program.h"
#include "io/output.h"

namespace argosy {

namespace fs = std::filesystem;

Result<Program> read_export_program(const ExportInput& input, Diagnostics& diagnostics) {
  ARGOSY_TRY(ProgramFormat format_of_file, program_format(input.capture));
  if (format_of_file != ProgramFormat::kCapture) {
    return fail(ErrorCode::kInvalidInput, format("{} is not a capture", quoted(input.capture.native(), 1000)),
                "argosy capture makes one");
  }
  ReadOptions options;
  options.diagnostics = &diagnostics;
  ARGOSY_TRY(Program program, read_program(input.capture, options));
  ARGOSY_TRY_STATUS(input.plan != nullptr ? attach(program, *input.plan, *input.checkpoint)
                                          : attach(program, *input.checkpoint));
  return program;
}

Export::Export(ExportDestination destination, JsonView capture)
    : destination_(std::move(destination)),
      model_class_(capture.find("model_class").as_string().value_or("")),
      limits_(engines::limit_lines(capture)) {}

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
  // Both have the files under their names before they appear, so that engines can be tried on them.
  auto fill = [&](auto output, const fs::path& written) -> Status {
    ARGOSY_TRY_STATUS(write_into(output.path(), options, progress));
    if (options.before_commit) ARGOSY_TRY_STATUS(options.before_commit(written));
    return output.commit();
  };
  if (destination_.is_folder) {
    ARGOSY_TRY(OutputFolder folder, OutputFolder::create(destination_.path, Overwrite::kReplace));
    fs::path written = folder.path();
    ARGOSY_TRY_STATUS(fill(std::move(folder), written));
  } else {
    ARGOSY_TRY(OutputFiles files, OutputFiles::create(destination_.path, Overwrite::kReplace));
    fs::path written = files.path() / destination_.path.filename();
    ARGOSY_TRY_STATUS(fill(std::move(files), written));
  }
  state.bytes_done = state.bytes_total;
  state.is_finished = true;
  if (options.progress) options.progress(state);
  return {};
}

}  // namespace argosy
