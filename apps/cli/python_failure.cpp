#include "python_failure.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "base/text.h"
#include "io/output.h"

namespace argosy::cli {
namespace {

constexpr size_t kMaxKeptLines = 10'000, kShownLines = 12;

/// "error: no such layer" or "error[not-found]: …" without what stands before; empty if it is no such line.
std::string_view after_word(std::string_view line, std::string_view word) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(word)) return "";
  line.remove_prefix(word.size());
  if (line.starts_with('[')) line.remove_prefix(std::min(line.find(']'), line.size() - 1) + 1);
  if (!line.starts_with(": ")) return "";
  return line.substr(2);
}

/// The line of the module's own error; -1 if there is none.
ptrdiff_t find_error(const std::deque<std::string>& lines) {
  for (auto i = static_cast<ptrdiff_t>(lines.size()) - 1; i >= 0; --i) {
    if (!after_word(lines[static_cast<size_t>(i)], "error").empty()) return i;
  }
  return -1;
}

}  // namespace

void PythonEnd::take(std::string_view line) {
  lines.emplace_back(line);
  if (lines.size() > kMaxKeptLines) lines.pop_front();
}

std::string PythonEnd::missing_package() const {
  constexpr std::string_view kSays = "No module named ";
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    size_t at = line->rfind(kSays);
    if (at == std::string::npos) continue;
    std::string_view rest = std::string_view(*line).substr(at + kSays.size());
    if (rest.starts_with('\'')) rest.remove_prefix(1);
    return std::string(rest.substr(0, rest.find_first_of("'.;) ")));
  }
  return "";
}

std::string PythonEnd::last_words() const {
  if (ptrdiff_t at = find_error(lines); at >= 0)
    return std::string(after_word(lines[static_cast<size_t>(at)], "error"));
  return lines.empty() ? format("{} -m {} ended with {}", python, module, exit_code) : lines.back();
}

std::string PythonEnd::own_hint() const {
  ptrdiff_t at = find_error(lines);
  if (at < 0 || static_cast<size_t>(at) + 1 >= lines.size()) return "";
  return std::string(after_word(lines[static_cast<size_t>(at) + 1], "hint"));
}

std::string how_to_install(std::string_view package) {
  struct Extra {
    std::string_view package, name;
  };
  constexpr std::array<Extra, 10> kExtras = {{{"argosy", "argosy[torch]"},
                                              {"torch", "argosy[torch]"},
                                              {"sympy", "argosy[torch]"},
                                              {"numpy", "argosy[torch]"},
                                              {"safetensors", "argosy[torch]"},
                                              {"transformers", "argosy[torch]"},
                                              {"onnx", "argosy[onnx]"},
                                              {"onnxruntime", "argosy[onnx]"},
                                              {"onnxruntime_genai", "argosy[genai]"},
                                              {"executorch", "argosy[executorch]"}}};
  for (const Extra& each : kExtras) {
    if (each.package == package) return format("pip install '{}'", each.name);
  }
  return format("pip install {}", package);
}

std::string keep_log(const PythonEnd& end, const Environment& environment) {
  std::string text = format("{} -m {} ended with {}\n", end.python, end.module, end.exit_code);
  for (const std::string& line : end.lines) text += line + '\n';
  std::filesystem::path path = environment.cache / "logs" / format("{}.log", end.module);
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  auto file = OutputFile::create(path, Overwrite::kReplace);
  if (file && file->write(text) && file->commit())
    return format("all that Python said is in {}", argosy::quoted(path.native(), 1000));
  std::string last = "Python's last lines are:";
  for (size_t i = end.lines.size() - std::min(kShownLines, end.lines.size()); i < end.lines.size(); ++i)
    last += format("\n    {}", end.lines[i]);
  return last;
}

Error python_failure(const PythonEnd& end, const std::string& what, const std::string& needs, ErrorCode code,
                     const Environment& environment) {
  if (std::string missing = end.missing_package(); !missing.empty()) {
    return {ErrorCode::kNotFound, format("{}, and {} has no {}", needs, end.python, missing),
            format("{}, or name another Python by ARGOSY_PYTHON", how_to_install(missing))};
  }
  std::string hint = end.own_hint();
  if (!hint.empty()) hint += "; ";
  return {code, format("{}: {}", what, end.last_words()), hint + keep_log(end, environment)};
}

}  // namespace argosy::cli
