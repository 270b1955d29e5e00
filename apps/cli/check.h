#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "driver/backends.h"
#include "driver/capture_key.h"
#include "options.h"
#include "terminal.h"

namespace argosy::cli {

/// How a check of an export ended. The user has been told; what is wrong, line by line.
struct CheckOutcome {
  enum class Kind : uint8_t { kRight, kWrong, kNotRun };
  Kind kind = Kind::kNotRun;
  std::string why;             // of kNotRun, in a few words without names of this machine
  std::string engine_missing;  // of kRight: why a bundle was not also run in its engine; empty: it was, or it has none
};

/// Whether models of this configuration are exported right, by a small one of the same kind (a twin). A check that
/// passed is remembered in the cache for the capture, the backend and its options, unless the engine that a bundle is
/// for was not there to run it; else `python -m argosy.check` is started.
CheckOutcome check_twin(const CaptureRequest& request, const std::filesystem::path& capture, const Backend& backend,
                        const BackendOptions& options, const Environment& environment, Terminal& terminal);

/// Compares what was just written (a file of any name, or a folder) with the model's own weights, greedy tokens too.
CheckOutcome check_written(const std::filesystem::path& written, const CaptureRequest& request,
                           std::string_view backend, const Environment& environment, Terminal& terminal);

}  // namespace argosy::cli
