#pragma once

#include <string>

#include "options.h"

namespace argosy::cli {

/// What the Python that captures are made with has of others' code (docs/how-to/extend.md): a line for each extension,
/// with its package, the version and a hash of its files; empty if there are none. Python is asked once, and again when
/// one of the folders has changed that it looks for packages in, or a file of an extension.
std::string installed_extensions(const Environment& environment);

}  // namespace argosy::cli
