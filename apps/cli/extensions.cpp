#include "extensions.h"

#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <span>

#include "base/system.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "python.h"
#include "subprocess.h"
#include "tensor/sha256.h"

namespace argosy::cli {
namespace {

constexpr auto kTimeout = std::chrono::seconds(60);
constexpr uint64_t kMaxAnswer = uint64_t{16} << 20;

/// In nanoseconds; 0 if it is not there.
uint64_t modified(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  system::Time time = system::modified(found);
  return static_cast<uint64_t>(time.seconds) * 1'000'000'000 + static_cast<uint64_t>(time.nanoseconds);
}

/// Whether nothing that an answer of argosy.extensions rests on has changed.
bool is_current(JsonView answer) {
  JsonView watched = answer.find("watched");
  if (answer.find("version").as_unsigned() != 1 || !watched.is_array()) return false;
  for (JsonView each : watched.items()) {
    auto path = each.find("path").as_string();
    if (!path || each.find("modified").as_unsigned() != modified(std::string(*path))) return false;
  }
  return true;
}

std::string text_of(JsonView answer) {
  std::string text;
  JsonView extensions = answer.find("extensions");
  if (!extensions.is_array()) return text;
  for (JsonView each : extensions.items()) {
    for (const char* key : {"name", "value", "package", "version", "hash"})
      text += format("{}\n", each.find(key).as_string().value_or(""));
  }
  return text;
}

/// What was answered before, if it still holds.
std::optional<std::string> remembered(const std::filesystem::path& path) {
  auto text = read_text_file(path, kMaxAnswer);
  if (!text) return std::nullopt;
  auto document = JsonDocument::parse_owned(*std::move(text), "extensions");
  if (!document || !is_current(document->root())) return std::nullopt;
  return text_of(document->root());
}

}  // namespace

std::string installed_extensions(const Environment& environment) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) return "";
  const std::string asked = format("{}\n{}", pythons[0], environment.python_paths);
  const std::string hash = sha256_hex(std::as_bytes(std::span(asked)));
  const std::filesystem::path path = environment.cache / "extensions" / format("{}.json", hash);
  if (auto known = remembered(path)) return *known;
  // A Python without argosy has none, and cannot make what they would change.
  auto answer = output_of({pythons[0], "-m", "argosy.extensions"}, kTimeout);
  if (!answer) return "";
  auto document = JsonDocument::parse(*answer, "extensions");
  if (!document || document->root().find("version").as_unsigned() != 1) return "";
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  // Where the cache cannot be written, Python is asked the next time, too.
  if (auto file = OutputFile::create(path, Overwrite::kReplace); file && file->write(*answer)) (void)file->commit();
  return text_of(document->root());
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
