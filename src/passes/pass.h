#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// What a pass may know besides the program.
struct PassContext {
  Diagnostics& diagnostics;  // for problems that do not stop the pass: all are reported together
};

/// A named function on a program. True: it changed the program. Names are kebab-case verbs, and are the vocabulary of
/// the command line.
struct Pass {
  std::string name;
  std::function<Result<bool>(Program&, PassContext&)> run;
  std::string settings = {};  // what it was made with, as text: "batch=1"

  /// "fix-sizes{batch=1}": the text that parse_pipeline() makes the pass from.
  std::string text() const { return settings.empty() ? name : name + "{" + settings + "}"; }
};

}  // namespace argosy
