#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy {

/// What `python -m argosy.check` found, as far as C++ needs it. The file has the figures of every call.
struct CheckReport {
  bool ok = false;
  std::string engine, model_class;
  size_t calls = 0;
  double largest = 0;              // difference over all calls, absolute; infinite where one could not be compared
  std::vector<std::string> wrong;  // a line for each call that is wrong
  std::string unchecked;           // why nothing was run, which is no fault of the export; empty: something was
  std::string engine_missing;      // why a bundle was not run in its engine; empty: it was, or none was asked for
  /// What the export costs, where that was measured: the share of tokens whose best one is the model's, nats, and the
  /// least cosine of outputs with the model's.
  std::optional<double> agreement, divergence, least_cosine;
  std::string quality;  // all figures of it, a JSON object; may be empty
  std::string summary;  // what was compared and what came of it, in plain words

  static Result<CheckReport> read(const std::filesystem::path& path);
};

/// Under which a passed check on a twin is remembered: a hash of the capture's bytes, the backend, the options of the
/// backend that change what it writes, and the sources of this library and of the check.
Result<std::string> twin_check_key(const std::filesystem::path& capture, std::string_view backend,
                                   std::string_view options);

/// A hash of the sources that decide what an export is: what was found with one holds for others of the same.
std::string_view source_hash();

}  // namespace argosy
