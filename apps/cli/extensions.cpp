#include "extensions.h"

#include <chrono>
#include <span>

#include "base/text.h"
#include "cache/extension_answer.h"
#include "io/output.h"
#include "python.h"
#include "subprocess.h"
#include "tensor/sha256.h"

namespace argosy::cli {
namespace {

constexpr auto kAnswerTimeout = std::chrono::seconds(60);

}  // namespace

std::string installed_extensions(const Environment& environment) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) return "";
  const std::string asked = format("{}\n{}", pythons[0], environment.python_paths);
  const std::string hash = sha256_hex(std::as_bytes(std::span(asked)));
  const std::filesystem::path path = extension_answers(environment.cache) / format("{}.json", hash);
  if (auto known = remembered_extensions(path)) return *known;
  // A Python without argosy has none, and cannot make what they would change.
  auto answer = output_of({pythons[0], "-m", "argosy.extensions"}, kAnswerTimeout);
  if (!answer) return "";
  auto text = extensions_of_answer(*answer);
  if (!text) return "";
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  // Where the cache cannot be written, Python is asked the next time, too.
  if (auto file = OutputFile::create(path, Overwrite::kReplace); file && file->write(*answer)) (void)file->commit();
  return *text;
}

Result<ExtensionProcess> start_extension(const std::string& module, const std::string& name, Error unknown,
                                         const Environment& environment) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty() || installed_extensions(environment).empty()) return fail(std::move(unknown));
  std::unique_ptr<Conversation> python = Conversation::start({pythons[0], "-m", module, name});
  std::optional<std::string> line = python == nullptr ? std::nullopt : python->receive_line();
  if (!line) {
    return fail(ErrorCode::kIo, format("{} -m {} gives no answer", pythons[0], module),
                "check that this Python has the version of argosy that this program is of");
  }
  ARGOSY_TRY(JsonDocument about, JsonDocument::parse(*line, module));
  JsonView answer = about.root();
  if (answer.find("unknown").as_bool().value_or(false)) {
    unknown.hint += format("; {}", text_at(answer, "error"));
    return fail(std::move(unknown));
  }
  if (!text_at(answer, "error").empty()) return fail(error_of_extension(answer));
  if (answer.find("version").as_integer() != 1) return fail(extension_of_another_version());
  return ExtensionProcess{std::move(python), std::move(about)};
}

Error error_of_extension(JsonView answer) {
  return {ErrorCode::kInvalidInput, text_at(answer, "error"), text_at(answer, "hint")};
}

Error extension_of_another_version() {
  return {ErrorCode::kUnsupportedVersion, "Python has another version of argosy, whose extensions are not understood",
          "install the version that this program is of"};
}

}  // namespace argosy::cli
