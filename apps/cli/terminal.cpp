#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/system.h"
#include "base/text.h"
#include "io/json.h"
#include "table.h"
#include "wrap.h"

namespace argosy::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr int kBarWidth = 24;
constexpr size_t kMaxFurtherErrors = 9;
constexpr size_t kLeastColumns = 40;  // in which lines are broken between words
constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr std::string_view kBold = "\x1b[1m", kRed = "\x1b[1;31m", kYellow = "\x1b[33m", kCyan = "\x1b[36m",
                           kPlain = "\x1b[0m";

bool is_terminal() { return isatty(STDERR_FILENO) != 0; }

/// Of the terminal; 0: it does not say.
size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 ? 0 : size.ws_col;
}

/// A line that is drawn again must not wrap.
std::string cut_to_width(std::string text) {
  const size_t width = columns();
  if (width < 2 || text.size() < width) return text;
  size_t end = width - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // no half character
  return text.substr(0, end);
}

/// The words by which lines begin, and their colours.
struct WordColour {
  std::string_view word, colour;
};
constexpr WordColour kColours[] = {
    {"error[", kRed}, {"argosy: error:", kRed}, {"argosy: warning:", kYellow}, {"  hint:", kCyan}};

std::string_view level_prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kError: return "argosy: error: ";
    case LogLevel::kWarn: return "argosy: warning: ";
    case LogLevel::kInfo: return "argosy: ";
    case LogLevel::kDebug: return "argosy: debug: ";
  }
  return "";
}

std::string bar_text(std::string_view task, const Progress& progress, double seconds, double rate) {
  double part = progress.bytes_total == 0
                    ? 1
                    : static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total);
  int filled = static_cast<int>(part * kBarWidth);
  std::string text =
      format("{} [{:<{}}] {:3.0f} %  {} of {}  {}/s  peak {}", task, std::string(static_cast<size_t>(filled), '#'),
             kBarWidth, part * 100, format_bytes(progress.bytes_done), format_bytes(progress.bytes_total),
             format_bytes(static_cast<uint64_t>(rate)), format_bytes(system::peak_rss_bytes()));
  if (progress.is_finished) return text + format("  {:.1f} s", seconds);
  if (rate > 0) {
    text += format("  {:.0f} s left", static_cast<double>(progress.bytes_total - progress.bytes_done) / rate);
  }
  return text;
}

std::string json_text(const Progress& progress, double seconds, double rate) {
  JsonWriter writer;
  writer.begin_object();
  writer.key("task").value(progress.task);
  writer.key("bytes_done").value(progress.bytes_done);
  writer.key("bytes_total").value(progress.bytes_total);
  writer.key("bytes_per_second").value(static_cast<uint64_t>(rate));
  writer.key("seconds").value(static_cast<double>(static_cast<int64_t>(seconds * 1000)) / 1000);
  writer.key("peak_rss_bytes").value(system::peak_rss_bytes());
  writer.key("finished").value(progress.is_finished);
  writer.end_object();
  return writer.take();
}

}  // namespace

struct Terminal::ProgressState {
  std::string task;
  Clock::time_point start, shown;
  bool has_bar = false;
};

struct Terminal::StageState {
  std::string text, detail;
  Clock::time_point start;
  size_t count = 0, begun = 0;
  bool runs = false;
  bool is_line_open = false;  // a plain line that has no end yet

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
};

Terminal::Terminal(const GlobalOptions& options)
    : options_(options),
      summary_(options.command),
      state_(std::make_unique<ProgressState>()),
      stage_(std::make_unique<StageState>()) {}

Terminal::~Terminal() {
  show_warnings();
  clear_bar();
}

bool Terminal::print(std::string_view text) {
  show_warnings();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

void Terminal::log(LogLevel level, std::string_view text) {
  if (level > options_.log_level) return;
  // Who asks for more than warnings gets each of them.
  if (level == LogLevel::kWarn && options_.log_level == LogLevel::kWarn) return warnings_.add(text);
  print_error(format("{}{}\n", level_prefix(level), text));
}

void Terminal::show_warnings() {
  for (const std::string& line : warnings_.take()) write_error(format("{}{}\n", level_prefix(LogLevel::kWarn), line));
}

void Terminal::print_error(std::string_view text) {
  show_warnings();
  write_error(text);
}

void Terminal::write_error(std::string_view text) {
  clear_bar();
  const size_t width = is_terminal() ? columns() : 0;
  std::string shown = coloured(width < kLeastColumns ? std::string(text) : wrapped(text, width));
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void Terminal::print_error(const Error& error) {
  fail_stage();
  summary_.set_failure(code_name(error.code), error.message, error.hint);
  // Messages show parts of files; only the line feeds are ours.
  std::string text = to_text(error), safe;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    safe += printable(rest.substr(0, end)) + '\n';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  print_error(safe);
}

void Terminal::print_further(const Diagnostics& diagnostics, const Error& printed) {
  size_t shown = 0, left_out = 0;
  for (const Error& error : diagnostics.errors) {
    // The one that was printed has more context by now, but is the same.
    if (error.code == printed.code && error.message == printed.message) continue;
    if (shown == kMaxFurtherErrors) {
      ++left_out;
      continue;
    }
    print_error(error);
    ++shown;
  }
  if (left_out > 0) print_error(format("… and {} more\n", count_of(left_out, "error")));
}

int Terminal::print_summary(int exit_code, double seconds) {
  if (!options_.json || summary_.is_left()) return exit_code;
  return print(summary_.text(exit_code, seconds)) || exit_code != kDone ? exit_code : kFailed;
}

ProgressHook Terminal::progress_hook() {
  if (options_.progress == ProgressMode::kOff) return {};
  if (options_.progress == ProgressMode::kAuto && !is_terminal()) return {};
  return [this](const Progress& progress) { show_progress(progress); };
}

void Terminal::progress_line(std::string_view json) {
  if (options_.progress == ProgressMode::kJson) print_error(format("{}\n", json));
}

void Terminal::show_progress(const Progress& progress) {
  Clock::time_point now = Clock::now();
  bool is_new = state_->task != progress.task;
  if (is_new) {
    state_->task = progress.task;
    state_->start = now;
  } else if (!progress.is_finished && now - state_->shown < kInterval) {
    return;
  }
  state_->shown = now;
  double seconds = std::chrono::duration<double>(now - state_->start).count();
  double rate = seconds > 0 ? static_cast<double>(progress.bytes_done) / seconds : 0;
  if (options_.progress == ProgressMode::kJson) {
    std::string line = json_text(progress, seconds, rate) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
    return;
  }
  // A stage has its own last line.
  const std::string task = stage_->runs ? stage_->text : progress.task;
  const bool is_last = progress.is_finished && !stage_->runs;
  std::string line = std::string(kClearLine) + cut_to_width(bar_text(task, progress, seconds, rate));
  if (is_last) line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  state_->has_bar = !is_last;
}

void Terminal::clear_bar() {
  if (std::exchange(stage_->is_line_open, false)) std::fputc('\n', stderr);
  if (!state_->has_bar) return;
  std::fwrite(kClearLine.data(), 1, kClearLine.size(), stderr);
  state_->has_bar = false;
}

bool Terminal::shows_stages() const {
  return options_.log_level >= LogLevel::kWarn &&
         (options_.progress == ProgressMode::kAuto || options_.progress == ProgressMode::kBar);
}

bool Terminal::redraws() const { return options_.progress == ProgressMode::kBar || is_terminal(); }

void Terminal::expect_stages(size_t count) {
  stage_->count = count;
  stage_->begun = 0;
}

void Terminal::begin_stage(std::string_view text) {
  show_warnings();
  StageState& stage = *stage_;
  ++stage.begun;
  stage.text = stage.count == 0 ? std::string(text)
                                : format("[{}/{}] {}", stage.begun, std::max(stage.begun, stage.count), text);
  stage.detail.clear();
  stage.start = Clock::now();
  if (!shows_stages()) return;
  clear_bar();
  stage.runs = true;
  if (redraws()) return draw_stage();
  std::string line = stage.text + "…";
  std::fwrite(line.data(), 1, line.size(), stderr);
  stage.is_line_open = true;
}

double Terminal::end_stage(std::string_view note) {
  show_warnings();
  const double seconds = stage_->seconds();
  if (!std::exchange(stage_->runs, false)) return seconds;
  const std::string took = note.empty() ? format("{:.1f} s", seconds) : std::string(note);
  std::string line =
      std::exchange(stage_->is_line_open, false) ? format(" {}\n", took) : format("{}… {}\n", stage_->text, took);
  print_error(line);
  return seconds;
}

void Terminal::fail_stage() {
  show_warnings();
  const double seconds = stage_->seconds();
  if (!std::exchange(stage_->runs, false)) return;
  if (!stage_->is_line_open) print_error(format("{}…", stage_->text));
  stage_->is_line_open = false;
  print_error(format(" failed after {:.1f} s\n", seconds));
}

void Terminal::stage_detail(std::string_view text) {
  stage_->detail = printable(text);
  tick();
}

void Terminal::tick() {
  show_warnings();
  if (stage_->runs && redraws()) draw_stage();
}

void Terminal::draw_stage() {
  std::string text = format("{}…", stage_->text);
  if (double seconds = stage_->seconds(); seconds >= 1) text += format(" {:.0f} s", seconds);
  if (!stage_->detail.empty()) text += format("  {}", stage_->detail);
  text = std::string(kClearLine) + cut_to_width(std::move(text));
  std::fwrite(text.data(), 1, text.size(), stderr);
  state_->has_bar = true;
}

std::string Terminal::coloured(std::string text) const {
  if (!options_.colours || !is_terminal()) return text;
  std::string result;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size());
    for (const auto& [word, colour] : kColours) {
      if (!line.starts_with(word)) continue;
      size_t end = std::min(line.find(':', word.size() - 1), line.size() - 1) + 1;
      result += format("{}{}{}", colour, line.substr(0, end), kPlain);
      line.remove_prefix(end);
    }
    result += line;
    if (!rest.empty()) {
      result += '\n';
      rest.remove_prefix(1);
    }
  }
  return result;
}

std::string Terminal::emphasized(std::string_view text) const {
  return options_.colours && is_terminal() ? format("{}{}{}", kBold, text, kPlain) : std::string(text);
}

}  // namespace argosy::cli
