#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "driver/progress.h"
#include "options.h"

namespace argosy::cli {

/// Where subcommands write: results to stdout, everything else to stderr.
class Terminal {
 public:
  explicit Terminal(const GlobalOptions& options);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// To stdout. False: it could not be written (a closed pipe, a full disk).
  bool print(std::string_view text);
  /// "argosy: warning: …" to stderr, if that level is asked for.
  void log(LogLevel level, std::string_view text);
  /// Any text to stderr.
  void print_error(std::string_view text);
  void print_error(const Error& error);
  /// The errors that were collected beside one that has been printed: a few in full, the number of the rest.
  void print_further(const Diagnostics& diagnostics, const Error& printed);

  /// A line of progress that is JSON already, where that form is asked for.
  void progress_line(std::string_view json);
  /// Draws a bar or writes a JSON line, a few times a second at most and at the end. Empty where nothing is to be
  /// shown.
  ProgressHook progress_hook();

 private:
  struct ProgressState;
  void show_progress(const Progress& progress);
  void clear_bar();

  GlobalOptions options_;
  std::unique_ptr<ProgressState> state_;
};

}  // namespace argosy::cli
