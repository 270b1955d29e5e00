#include "driver/executorch/export_live_executorch.h"

#include "backends/executorch/writer.h"
#include "driver/executorch/lower_executorch.h"
#include "frontends/read_program.h"
#include "io/output.h"

namespace argosy {

namespace fs = std::filesystem;

Result<LiveExecutorchProgram> lower_live_executorch(const fs::path& capture, std::span<const LiveTensor> weights,
                                                    const ExecutorchOptions& options, Diagnostics& diagnostics) {
  ReadOptions read_options;
  read_options.diagnostics = &diagnostics;
  ARGOSY_TRY(Program program, read_program(capture, read_options));
  ARGOSY_TRY_STATUS(attach_live(program, weights));
  LiveExecutorchProgram result;
  ARGOSY_TRY(result.document, lower_to_executorch(std::move(program), options, {}, diagnostics));
  result.notes = diagnostics.notes;
  return result;
}

Status save_live_program(const LiveExecutorchProgram& program, const fs::path& path) {
  ARGOSY_TRY(executorch::Layout layout, executorch::Layout::build(program.document, executorch::DataPlace::kInside));
  ARGOSY_TRY(OutputFiles files, OutputFiles::create(fs::absolute(path), Overwrite::kReplace));
  ARGOSY_TRY_STATUS(layout.write(files.path() / path.filename(), {}, {}));
  return files.commit();
}

}  // namespace argosy
