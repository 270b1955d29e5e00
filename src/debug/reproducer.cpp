#include "debug/reproducer.h"

#include "argosy/version.h"
#include "base/text.h"
#include "debug/named_passes.h"
#include "io/file.h"
#include "io/folder_contents.h"
#include "io/json.h"
#include "io/output.h"
#include "io/write_file.h"
#include "ir/text.h"
#include "passes/run_passes.h"

namespace argosy {
namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kMaxPasses = 10'000;

std::string replay_json(std::span<const std::string> passes, bool verify_each) {
  JsonWriter writer(JsonWriter::Layout::kIndented);
  writer.begin_object();
  writer.key("format").value(kFormat);
  writer.key("argosy").value(version());
  writer.key("passes").begin_array();
  for (const std::string& pass : passes) writer.value(pass);
  writer.end_array();
  writer.key("options").begin_object().key("verify_each").value(verify_each).end_object();
  writer.end_object();
  return writer.take() + "\n";
}

tl::unexpected<Error> bad_field(const std::filesystem::path& path, std::string_view field, std::string_view wanted) {
  return fail(ErrorCode::kCorruptFile, format("{}: \"{}\" is not {}", path.string(), field, wanted),
              "the folder is not as argosy wrote it; make the reproducer again");
}

Status read_replay_json(const std::filesystem::path& path, Reproducer& reproducer) {
  ARGOSY_TRY(std::string text, read_text_file(path, uint64_t{1} << 20));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse(text, path.string()));
  JsonView root = document.root();
  JsonView format_version = root.find("format");
  if (!format_version.is_valid() || !format_version.as_integer()) return bad_field(path, "format", "a number");
  if (*format_version.as_integer() != kFormat) {
    return fail(ErrorCode::kUnsupportedVersion,
                format("{}: reproducer format {} is not {}", path.string(), *format_version.as_integer(), kFormat),
                "replay it with the version of argosy that wrote it");
  }
  JsonView passes = root.find("passes");
  if (!passes.is_array() || passes.size() == 0 || passes.size() > kMaxPasses) {
    return bad_field(path, "passes", "a list of names");
  }
  for (JsonView pass : passes.items()) {
    if (!pass.as_string()) return bad_field(path, "passes", "a list of names");
    reproducer.passes.emplace_back(*pass.as_string());
  }
  JsonView written_by = root.find("argosy");
  if (written_by.is_valid() && written_by.as_string()) reproducer.version = *written_by.as_string();
  JsonView verify_each = root.find("options").find("verify_each");
  if (!verify_each.is_valid() || !verify_each.as_bool()) return bad_field(path, "options.verify_each", "a boolean");
  reproducer.verify_each = *verify_each.as_bool();
  return {};
}

/// Whatever else is in the folder is the user's.
Status check_is_reproducer(const std::filesystem::path& folder) {
  ARGOSY_TRY(FolderContents contents, folder_contents(folder));
  for (const auto& [name, entry] : contents.entries) {
    if (name == "program.ir" || name == "replay.json" || name == "error.txt") continue;
    return fail(ErrorCode::kIo, format("{} holds {}, which is not of a reproducer", folder.string(), quoted(name)),
                "move it away, or choose another folder with --repro-dir");
  }
  return {};
}

}  // namespace

Status write_reproducer(const std::filesystem::path& folder, const Program& before, std::span<const std::string> passes,
                        bool verify_each, const Error& error) {
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored) && !std::filesystem::exists(folder / "replay.json", ignored)) {
    return fail(ErrorCode::kIo, format("{} exists and is not a reproducer", folder.string()),
                "remove it, or choose another folder with --repro-dir");
  }
  ARGOSY_TRY(OutputFolder output, OutputFolder::create(folder, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(write_file(output.path() / "program.ir", print(before), Overwrite::kRefuse));
  ARGOSY_TRY_STATUS(write_file(output.path() / "replay.json", replay_json(passes, verify_each), Overwrite::kRefuse));
  ARGOSY_TRY_STATUS(write_file(output.path() / "error.txt", to_text(error), Overwrite::kRefuse));
  return output.commit(check_is_reproducer);
}

Result<Reproducer> read_reproducer(const std::filesystem::path& folder) {
  Reproducer reproducer;
  ARGOSY_TRY_STATUS(read_replay_json(folder / "replay.json", reproducer));
  ARGOSY_TRY(std::string text, read_text_file(folder / "program.ir"));
  auto program = parse(text);
  if (!program) return fail(program.error().in((folder / "program.ir").string()));
  reproducer.program = *std::move(program);
  ARGOSY_TRY(reproducer.error, read_text_file(folder / "error.txt", uint64_t{16} << 20));
  return reproducer;
}

Status replay(Reproducer& reproducer) {
  ARGOSY_TRY(Pipeline pipeline, parse_pipeline(join(reproducer.passes, ","), every_pass()));
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  PipelineHooks hooks;
  hooks.verify_each = reproducer.verify_each;
  ARGOSY_TRY([[maybe_unused]] bool has_changed, verify_and_run(pipeline, reproducer.program, context, hooks));
  return {};
}

}  // namespace argosy
