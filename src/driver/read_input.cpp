#include "driver/read_input.h"

#include "base/text.h"
#include "frontends/read_program.h"

namespace argosy {

Result<InputProgram> read_input(const std::filesystem::path& path, const InputOptions& options) {
  ARGOSY_TRY(ProgramFormat format_of_file, program_format(path));
  ReadOptions read_options;
  read_options.diagnostics = options.diagnostics;
  InputProgram input;
  read_options.sample_inputs = &input.sample_inputs;
  if (format_of_file == ProgramFormat::kPt2) {
    std::error_code ignored;
    if (!std::filesystem::exists(options.schemas, ignored)) {
      return fail(ErrorCode::kNotFound,
                  format("reading {} needs the schemas of its ops, and there is no file {}", path.string(),
                         options.schemas.string()),
                  "run: python -m argosy.schemas (where torch is installed), or name a file with --schemas");
    }
    read_options.schemas = options.schemas;
  }
  ARGOSY_TRY(input.program, read_program(path, read_options));
  return input;
}

}  // namespace argosy
