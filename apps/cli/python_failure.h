#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "options.h"

namespace argosy::cli {

/// How a module of Python's ended.
struct PythonEnd {
  std::string python;  // the interpreter
  std::string module;
  int exit_code = 0;
  std::deque<std::string> lines;  // that it wrote and that are no progress; of very many the last

  void take(std::string_view line);
  /// The package that it lacks; empty if that is not what ended it.
  std::string missing_package() const;
  /// What went wrong in a line: the module's own error, else the last line of all.
  std::string last_words() const;
  /// The hint of its own error; may be empty.
  std::string own_hint() const;
};

/// "pip install 'argosy[torch]'": what brings a package of Python's.
std::string how_to_install(std::string_view package);

/// Writes all that it said to a file of the cache's folder, in place of what the module left there before. "all that
/// Python said is in FILE"; what there is of its last lines if the file cannot be written.
std::string keep_log(const PythonEnd& end, const Environment& environment);

/// In a line or two: a package that is missing and how to install it, else what went wrong and where the rest is kept.
/// `what` did not come about ("no capture was made"); `needs` says what it takes ("the first export of an architecture
/// needs torch and transformers").
Error python_failure(const PythonEnd& end, const std::string& what, const std::string& needs, ErrorCode code,
                     const Environment& environment);

}  // namespace argosy::cli
