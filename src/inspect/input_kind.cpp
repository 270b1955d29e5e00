#include <cstring>

#include "base/text.h"
#include "frontends/read_program.h"
#include "inspect/inspect.h"
#include "io/file.h"

namespace argosy {

std::string_view describe(InputKind kind) {
  switch (kind) {
    case InputKind::kPt2: return "torch.export archive";
    case InputKind::kCapture: return "capture";
    case InputKind::kText: return "IR text";
    case InputKind::kCheckpoint: return "safetensors checkpoint";
    case InputKind::kOnnx: return "ONNX model";
    case InputKind::kExecutorch: return "ExecuTorch program";
  }
  return "";
}

Result<InputKind> input_kind(const std::filesystem::path& path) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(ErrorCode::kNotFound, format("there is no file or folder {}", path.string()), "check the path");
  }
  if (std::filesystem::is_directory(status)) return InputKind::kCheckpoint;
  std::string name = path.filename().string();
  if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) return InputKind::kCheckpoint;
  if (name.ends_with(".onnx")) return InputKind::kOnnx;
  if (name.ends_with(".pte")) return InputKind::kExecutorch;
  if (name.ends_with(".ir")) return InputKind::kText;
  ARGOSY_TRY(auto file, ReadFile::open(path));
  std::byte head[9] = {};
  if (file->size() >= sizeof head) ARGOSY_TRY_STATUS(file->read(0, head));
  if (std::memcmp(head + 4, "ET12", 4) == 0) return InputKind::kExecutorch;
  if (std::memcmp(head, "PK", 2) == 0 || name.ends_with(".pt2") || name.ends_with(".capture")) {
    ARGOSY_TRY(ProgramFormat kind, program_format(path));
    return kind == ProgramFormat::kPt2       ? InputKind::kPt2
           : kind == ProgramFormat::kCapture ? InputKind::kCapture
                                             : InputKind::kText;
  }
  if (head[8] == std::byte{'{'} && head[7] == std::byte{0}) return InputKind::kCheckpoint;
  return fail(
      ErrorCode::kInvalidInput, format("{} is not of a kind that argosy knows", path.string()),
      "it reads .pt2, .capture, .ir, .onnx, .pte, .safetensors, an index of shards (.safetensors.index.json), and "
      "folders of these last two");
}

}  // namespace argosy
