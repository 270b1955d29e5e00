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

constexpr auto kTimeout = std::chrono::seconds(60);

}  // namespace

std::string installed_extensions(const Environment& environment) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) return "";
  const std::string asked = format("{}\n{}", pythons[0], environment.python_paths);
  const std::string hash = sha256_hex(std::as_bytes(std::span(asked)));
  const std::filesystem::path path = extension_answers(environment.cache) / format("{}.json", hash);
  if (auto known = remembered_extensions(path)) return *known;
  // A Python without argosy has none, and cannot make what they would change.
  auto answer = output_of({pythons[0], "-m", "argosy.extensions"}, kTimeout);
  if (!answer) return "";
  auto text = extensions_of_answer(*answer);
  if (!text) return "";
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  // Where the cache cannot be written, Python is asked the next time, too.
  if (auto file = OutputFile::create(path, Overwrite::kReplace); file && file->write(*answer)) (void)file->commit();
  return *text;
}

}  // namespace argosy::cli
