#include "driver/write_program.h"

#include "base/text.h"
#include "io/output.h"
#include "ir/text.h"

namespace argosy {
namespace {

enum class FileKind : uint8_t { kText, kPt2 };

Result<FileKind> file_kind(const std::filesystem::path& path) {
  if (path.extension() == ".ir") return FileKind::kText;
  return fail(ErrorCode::kInvalidInput, format("no writer fits the name {}", path.string()), "name a file .ir (text)");
}

}  // namespace

Status write_text(const std::filesystem::path& path, std::string_view text) {
  ARGOSY_TRY(OutputFile file, OutputFile::create(path, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(file.write(text));
  return file.commit();
}

Status check_output(const std::filesystem::path& path) {
  ARGOSY_TRY([[maybe_unused]] FileKind kind, file_kind(path));
  return {};
}

Status write_program(const std::filesystem::path& path, const InputProgram& input, const ProgressHook&) {
  ARGOSY_TRY([[maybe_unused]] FileKind kind, file_kind(path));
  return write_text(path, print(input.program));
}

}  // namespace argosy
