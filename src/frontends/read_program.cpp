#include "frontends/read_program.h"

#include <algorithm>

#include "base/text.h"
#include "frontends/capture/capture.h"
#include "frontends/pt2/archive.h"
#include "frontends/schema_library.h"
#include "io/file.h"
#include "io/zip.h"
#include "ir/text.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxText = uint64_t{1} << 30;

/// The zip, if the file is one; an error only if it is a broken one, or is no zip but named like one.
Result<std::optional<ZipReader>> open_zip(const std::filesystem::path& path) {
  ARGOSY_TRY(std::shared_ptr<const ReadFile> file, ReadFile::open(path));
  ARGOSY_TRY(std::string magic, file->read_text(0, std::min<uint64_t>(file->size(), 2)));
  bool is_named_zip = path.extension() == ".pt2" || path.extension() == ".capture";
  if (magic != "PK" && !is_named_zip) return std::optional<ZipReader>();
  ARGOSY_TRY(ZipReader zip, ZipReader::open(std::move(file)));
  return std::optional<ZipReader>(std::move(zip));
}

tl::unexpected<Error> unknown_format(const std::filesystem::path& path) {
  return fail(ErrorCode::kInvalidInput, format("{} is not a program", quoted(path.string())),
              "programs are .pt2 archives of torch.export.save, .capture files and IR text (.ir)");
}

Result<ProgramFormat> format_of(const std::filesystem::path& path, const std::optional<ZipReader>& zip) {
  if (!zip) {
    if (path.extension() == ".ir") return ProgramFormat::kText;
    return unknown_format(path);
  }
  if (is_capture(*zip)) return ProgramFormat::kCapture;
  if (is_pt2(*zip) || path.extension() == ".pt2") return ProgramFormat::kPt2;
  return unknown_format(path);
}

Result<Program> read_format(const std::filesystem::path& path, const ReadOptions& options) {
  ARGOSY_TRY(std::optional<ZipReader> zip, open_zip(path));
  ARGOSY_TRY(ProgramFormat kind, format_of(path, zip));
  switch (kind) {
    case ProgramFormat::kText: {
      ARGOSY_TRY(std::string text, read_text_file(path, kMaxText));
      return parse(text);
    }
    case ProgramFormat::kCapture: return read_capture(*zip, options.diagnostics);
    case ProgramFormat::kPt2: break;
  }
  SchemaLibrary schemas;
  if (!options.schemas.empty()) {
    ARGOSY_TRY(schemas, SchemaLibrary::load(options.schemas));
  }
  return read_pt2(*zip,
                  {.schemas = &schemas, .diagnostics = options.diagnostics, .sample_inputs = options.sample_inputs});
}

}  // namespace

Result<ProgramFormat> program_format(const std::filesystem::path& path) {
  ARGOSY_TRY(std::optional<ZipReader> zip, open_zip(path));
  return format_of(path, zip);
}

Result<Program> read_program(const std::filesystem::path& path, const ReadOptions& options) {
  size_t before = options.diagnostics == nullptr ? 0 : options.diagnostics->errors.size();
  Result<Program> program = read_format(path, options);
  if (program) return program;
  std::string what = format("reading {}", path.string());
  program.error().in(what);
  if (options.diagnostics != nullptr) {
    std::vector<Error>& errors = options.diagnostics->errors;
    for (size_t i = before; i < errors.size(); ++i) errors[i].in(what);
    if (errors.size() == before) errors.push_back(program.error());
  }
  return program;
}

}  // namespace argosy
