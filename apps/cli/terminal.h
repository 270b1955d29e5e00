#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "driver/progress.h"
#include "options.h"
#include "summary.h"
#include "warnings.h"

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
  /// "argosy: warning: …" to stderr, if that level is asked for. Warnings of one kind are one line; they are shown
  /// before anything else is.
  void log(LogLevel level, std::string_view text);
  /// Any text to stderr.
  void print_error(std::string_view text);
  void print_error(const Error& error);
  /// The errors that were collected beside one that has been printed: a few in full, the number of the rest.
  void print_further(const Diagnostics& diagnostics, const Error& printed);

  /// Whether the result is wanted as JSON: then summary() gets it, and print() prints nothing of it.
  bool wants_json() const { return options_.json; }
  /// The first error that is printed is in it, too.
  Summary& summary() { return summary_; }
  /// At the end, where JSON is wanted. The exit code, another one if that could not be printed.
  int print_summary(int exit_code, double seconds);

  /// Work that takes time, as its user sees it: "[1/4] Tracing LlamaForCausalLM" and, when it ends, the seconds that it
  /// took. On a terminal the line is drawn again with the seconds that run; elsewhere it is a plain line. Nothing is
  /// shown where progress is JSON or off. An error that is printed ends the stage as failed.
  void begin_stage(std::string_view text);
  /// `note` takes the place of the seconds if it is not empty. Returns the seconds.
  double end_stage(std::string_view note = "");
  /// How many stages begin from now on, to number them; 0: they have no numbers.
  void expect_stages(size_t count);
  /// What the stage does at the moment, for a line that is drawn again.
  void stage_detail(std::string_view text);
  /// To be called about once a second while a stage runs.
  void tick();
  /// Bold on a terminal.
  std::string emphasized(std::string_view text) const;

  /// A line of progress that is JSON already, where that form is asked for.
  void progress_line(std::string_view json);
  /// Draws a bar or writes a JSON line, a few times a second at most and at the end. Empty where nothing is to be
  /// shown.
  ProgressHook progress_hook();

 private:
  struct ProgressState;
  struct StageState;
  void show_progress(const Progress& progress);
  void clear_bar();
  bool shows_stages() const;
  bool redraws() const;
  void draw_stage();
  void fail_stage();
  void show_warnings();
  void write_error(std::string_view text);
  std::string coloured(std::string text) const;

  GlobalOptions options_;
  Summary summary_;
  Warnings warnings_;
  std::unique_ptr<ProgressState> state_;
  std::unique_ptr<StageState> stage_;
};

}  // namespace argosy::cli
