#pragma once

#include <filesystem>

#include "driver/backend_options.h"
#include "engines/lint.h"
#include "options.h"

namespace argosy::cli {

/// Finds the engine that --for names and that is not one of ours: an extension has registered it
/// (docs/how-to/extend.md). `options` get the engine of ours that its bundles are based on, and its own part, which a
/// Python process carries out that lives as long. Does nothing if the engine is ours.
Status find_own_engine(OnnxOptions& options, const Environment& environment);

/// Adds to a report what the engine finds that the folder's bundle.json says it was made for, if that is a package's.
/// Empty, or why it was not asked.
Result<std::string> lint_by_own_engine(const std::filesystem::path& folder, engines::LintReport& report,
                                       const Environment& environment);

}  // namespace argosy::cli
