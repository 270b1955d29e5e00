#include "own_engines.h"

#include <memory>
#include <utility>

#include "base/text.h"
#include "driver/export_manifest.h"
#include "driver/onnx/own_engine.h"
#include "engines/engine.h"
#include "extensions.h"
#include "io/file.h"
#include "io/json.h"
#include "table.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEngineModule = "argosy.bundle_engine_process";
constexpr const char* kAnswer = "the answer of argosy.bundle_engine_process";

/// One request: a line of JSON that names what to do and with which folder. The answer is another line.
Result<JsonDocument> ask(Conversation& python, std::string_view task, const fs::path& folder, std::string_view engine) {
  JsonWriter request;
  request.begin_object().key("do").value(task).key("folder").value(folder.string()).end_object();
  std::string line = request.take();
  std::erase(line, '\n');  // of texts there are none: JSON escapes them
  line += '\n';
  std::optional<std::string> said;
  if (python.send(std::as_bytes(std::span(line)))) said = python.receive_line();
  if (!said) {
    return fail(ErrorCode::kIo, format("the Python process of the engine {} has ended", quoted(engine)),
                "it may lack memory, or the engine ends Python; run its function in Python to see");
  }
  ARGOSY_TRY(JsonDocument answer, JsonDocument::parse(*said, kAnswer));
  if (!text_at(answer.root(), "error").empty()) return fail(error_of_extension(answer.root()));
  return answer;
}

/// Files that the engine says it has written are there, and inside of the folder.
Result<std::vector<std::string>> written_files(JsonView answer, const fs::path& folder, std::string_view engine) {
  std::vector<std::string> names;
  for (JsonView each : answer.find("files").items()) {
    const std::string name(each.as_string().value_or(""));
    const fs::path path(name);
    std::error_code ignored;
    const bool is_inside =
        !name.empty() && path.is_relative() && path == path.lexically_normal() && *path.begin() != "..";
    if (!is_inside || fs::symlink_status(folder / path, ignored).type() != fs::file_type::regular) {
      return fail(ErrorCode::kInvalidInput,
                  format("the engine {} lists {}, which is no file that it wrote", quoted(engine), quoted(name)),
                  "correct the package that has it");
    }
    names.push_back(name);
  }
  return names;
}

std::vector<engines::Finding> findings_of(JsonView answer, const std::string& engine) {
  std::vector<engines::Finding> findings;
  for (JsonView each : answer.find("findings").items()) {
    const bool is_warning = each.find("is_warning").as_bool().value_or(false);
    findings.push_back({is_warning ? engines::Finding::Severity::kWarning : engines::Finding::Severity::kError, engine,
                        printable(text_at(each, "file")), printable(text_at(each, "what")),
                        printable(text_at(each, "hint"))});
  }
  return findings;
}

Error unknown_engine(const std::string& name) {
  std::vector<std::string> names;
  for (const engines::Engine& engine : engines::all_engines()) {
    if (engine.backend == "onnx") names.emplace_back(engine.name);
  }
  return {ErrorCode::kInvalidInput, format("--for: {} is not one of {}", quoted(name), join(names, ", ")),
          "write one of these, or an engine of a package that is installed"};
}

}  // namespace

Status find_own_engine(OnnxOptions& options, const Environment& environment) {
  if (engines::find_engine(options.engine) != nullptr) return {};
  ARGOSY_TRY(ExtensionProcess started,
             start_extension(kEngineModule, options.engine, unknown_engine(options.engine), environment));
  JsonView about = started.about.root();
  auto own = std::make_shared<OwnEngine>();
  own->name = options.engine;
  own->title = printable(text_at(about, "title"));
  own->package = text_at(about, "package");
  own->version = text_at(about, "package_version");
  for (auto [component, file] : about.find("graphs").members())
    own->graphs.emplace(component, file.as_string().value_or(""));
  std::shared_ptr<Conversation> python = std::move(started.python);
  own->complete = [python, name = own->name](const fs::path& folder) -> Result<std::vector<std::string>> {
    ARGOSY_TRY(JsonDocument answer, ask(*python, "complete", folder, name));
    return written_files(answer.root(), folder, name);
  };
  own->lint = [python, name = own->name](const fs::path& folder) -> Result<std::vector<engines::Finding>> {
    ARGOSY_TRY(JsonDocument answer, ask(*python, "lint", folder, name));
    return findings_of(answer.root(), name);
  };
  options.engine = text_at(about, "base");
  if (engines::find_engine(options.engine) == nullptr) return fail(extension_of_another_version());
  options.own_engine = std::move(own);
  return {};
}

Result<std::string> lint_by_own_engine(const fs::path& folder, engines::LintReport& report,
                                       const Environment& environment) {
  auto text = read_text_file(folder / kBundleManifest, kMaxManifest);
  if (!text) return std::string();
  auto manifest = JsonDocument::parse_owned(*std::move(text), kBundleManifest);
  if (!manifest) return std::string();
  JsonView named = manifest->root().find(kOwnEngineKey);
  OnnxOptions options;
  options.engine = text_at(named, "name");
  if (options.engine.empty() || engines::find_engine(options.engine) != nullptr) return std::string();
  if (!is_registered_name(options.engine) || !find_own_engine(options, environment)) {
    return format("{} of {} {} is not asked, since no installed package has this engine", printable(options.engine),
                  printable(text_at(named, "package")), printable(text_at(named, "version")));
  }
  ARGOSY_TRY(std::vector<engines::Finding> findings, options.own_engine->lint(fs::absolute(folder)));
  report.engine = options.own_engine->name;
  report.findings.insert(report.findings.end(), findings.begin(), findings.end());
  return std::string();
}

}  // namespace argosy::cli
