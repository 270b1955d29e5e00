#include "io/write_file.h"

namespace argosy {

Status write_file(const std::filesystem::path& path, std::string_view bytes, Overwrite overwrite) {
  ARGOSY_TRY(OutputFile file, OutputFile::create(path, overwrite));
  ARGOSY_TRY_STATUS(file.write(bytes));
  return file.commit();
}

}  // namespace argosy
