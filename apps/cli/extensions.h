#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "io/json.h"
#include "options.h"
#include "subprocess.h"

namespace argosy::cli {

/// What the Python that captures are made with has of others' code (docs/how-to/extend.md): a line for each extension,
/// with its package, the version and a hash of its files; empty if there are none. Python is asked once, and again when
/// one of the folders has changed that it looks for packages in, or a file of an extension.
std::string installed_extensions(const Environment& environment);

/// A Python process that runs what an extension has registered, and what it said of that first.
struct ExtensionProcess {
  std::unique_ptr<Conversation> python;
  JsonDocument about;
};

/// Starts `python -m module name`, whose first line is JSON. `unknown` is the error if no extension has that name; its
/// hint gets those that there are.
Result<ExtensionProcess> start_extension(const std::string& module, const std::string& name, Error unknown,
                                         const Environment& environment);

/// What an answer says that is {"error": …, "hint": …}.
Error error_of_extension(JsonView answer);
Error extension_of_another_version();

}  // namespace argosy::cli
