#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cache/capture_key.h"
#include "driver/backends.h"
#include "options.h"
#include "terminal.h"

namespace argosy::cli {

/// How a check of an export ended. The user has been told; what is wrong, line by line.
struct CheckOutcome {
  /// kFailed: the check itself ended in an error, so that nobody knows; kNotRun: this machine lacks what it needs.
  enum class Kind : uint8_t { kRight, kWrong, kFailed, kNotRun };
  Kind kind = Kind::kNotRun;
  std::string why;             // of kFailed and kNotRun, in a few words without names of this machine
  std::string engine_missing;  // of kRight: why a bundle was not also run in its engine; empty: it was, or it has none
  std::string compared;        // of kRight: what ran and what came of it, in plain words
  std::optional<double> agreement = {}, divergence = {}, least_cosine = {};  // as CheckReport has them
  std::string quality = {};
  std::string hint = {};  // of kFailed: where all that it said is kept, with "; " behind; may be empty
};

/// Whether models of this configuration are exported right, by a small one of the same kind (a twin). A check that
/// passed is remembered in the cache for the capture, the backend and its options, unless the engine that a bundle is
/// for was not there to run it; else `python -m argosy.check` is started.
CheckOutcome check_twin(const CaptureRequest& request, const std::filesystem::path& capture, const Backend& backend,
                        const BackendOptions& options, const Environment& environment, Terminal& terminal);

/// Compares what was just written (a file of any name, or a folder) with the model's own weights, greedy tokens too,
/// and on what the user gives for it. `variant`: of several in the folder.
CheckOutcome check_written(const std::filesystem::path& written, const std::string& variant,
                           const CaptureRequest& request, std::string_view backend, const CheckedOn& given,
                           const Environment& environment, Terminal& terminal);

}  // namespace argosy::cli
