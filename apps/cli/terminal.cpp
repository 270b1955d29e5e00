#include "terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "driver/process_memory.h"
#include "io/json.h"
#include "table.h"

namespace argosy::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr int kBarWidth = 24;
constexpr size_t kMaxFurtherErrors = 9;

std::string_view level_prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kError: return "argosy: error: ";
    case LogLevel::kWarn: return "argosy: warning: ";
    case LogLevel::kInfo: return "argosy: ";
    case LogLevel::kDebug: return "argosy: debug: ";
  }
  return "";
}

std::string bar_text(const Progress& progress, double seconds, double rate) {
  double part = progress.bytes_total == 0
                    ? 1
                    : static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total);
  int filled = static_cast<int>(part * kBarWidth);
  std::string text = format("{} [{:<{}}] {:3.0f} %  {} of {}  {}/s  peak {}", progress.task,
                            std::string(static_cast<size_t>(filled), '#'), kBarWidth, part * 100,
                            format_bytes(progress.bytes_done), format_bytes(progress.bytes_total),
                            format_bytes(static_cast<uint64_t>(rate)), format_bytes(peak_rss_bytes()));
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
  writer.key("peak_rss_bytes").value(peak_rss_bytes());
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

Terminal::Terminal(const GlobalOptions& options) : options_(options), state_(std::make_unique<ProgressState>()) {}

Terminal::~Terminal() { clear_bar(); }

bool Terminal::print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

void Terminal::log(LogLevel level, std::string_view text) {
  if (level > options_.log_level) return;
  print_error(format("{}{}\n", level_prefix(level), text));
}

void Terminal::print_error(std::string_view text) {
  clear_bar();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Terminal::print_error(const Error& error) {
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

ProgressHook Terminal::progress_hook() {
  if (options_.progress == ProgressMode::kOff) return {};
  if (options_.progress == ProgressMode::kAuto && isatty(STDERR_FILENO) == 0) return {};
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
  std::string line = "\r\x1b[K" + bar_text(progress, seconds, rate) + (progress.is_finished ? "\n" : "");
  std::fwrite(line.data(), 1, line.size(), stderr);
  state_->has_bar = !progress.is_finished;
}

void Terminal::clear_bar() {
  if (!state_->has_bar) return;
  std::fputs("\r\x1b[K", stderr);
  state_->has_bar = false;
}

}  // namespace argosy::cli
