#include "driver/write_program.h"

#include "backends/pt2/writer.h"
#include "base/text.h"
#include "driver/executorch/lower_executorch.h"
#include "driver/onnx/lower_onnx.h"
#include "io/write_file.h"
#include "ir/text.h"

namespace argosy {
namespace {

enum class FileKind : uint8_t { kText, kPt2, kOnnx, kPte };

Result<FileKind> file_kind(const std::filesystem::path& path) {
  if (path.extension() == ".ir") return FileKind::kText;
  if (path.extension() == ".pt2") return FileKind::kPt2;
  if (path.extension() == ".onnx") return FileKind::kOnnx;
  if (path.extension() == ".pte") return FileKind::kPte;
  return fail(ErrorCode::kInvalidInput, format("no writer fits the name {}", path.string()),
              "end the name in .ir (text), .pt2 (an archive of torch.export), .onnx or .pte");
}

Status write_archive(const std::filesystem::path& path, const InputProgram& input, const ProgressHook& progress) {
  Pt2WriteOptions options;
  options.path = path;
  options.overwrite = Overwrite::kReplace;
  options.sample_inputs = input.sample_inputs;
  Progress state{format("write {}", path.filename().string()), 0, 0, false};
  if (progress) {
    options.progress = [&](uint64_t done, uint64_t total) {
      state.bytes_done = done;
      state.bytes_total = total;
      progress(state);
    };
  }
  ARGOSY_TRY_STATUS(write_pt2(input.program, options));
  state.is_finished = true;
  if (progress) progress(state);
  return {};
}

}  // namespace

Status check_output(const std::filesystem::path& path) {
  ARGOSY_TRY([[maybe_unused]] FileKind kind, file_kind(path));
  return {};
}

Status write_program(const std::filesystem::path& path, const InputProgram& input, const ProgressHook& progress,
                     const BackendOptions& backends, Diagnostics& diagnostics) {
  ARGOSY_TRY(FileKind kind, file_kind(path));
  if (kind == FileKind::kText) return write_file(path, print(input.program), Overwrite::kReplace);
  if (kind == FileKind::kPt2) return write_archive(path, input, progress);
  if (kind == FileKind::kPte)
    return write_executorch_program(path, input.program, backends.executorch, {}, diagnostics);
  OnnxOptions options = backends.onnx;
  options.missing_weights_as_inputs = true;
  ARGOSY_TRY(std::string bytes, onnx_model_bytes(input.program, options, diagnostics));
  return write_file(path, bytes, Overwrite::kReplace);
}

}  // namespace argosy
