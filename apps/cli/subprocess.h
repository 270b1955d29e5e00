#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::cli {

/// The full path of a program on PATH; nullopt if there is none.
std::optional<std::string> find_program(const std::string& name);

/// The full path of a program in the folder of this one; nullopt if there is none.
std::optional<std::string> find_beside(const std::string& name);

/// What a program writes to stdout; nullopt if it cannot be started, fails, writes more than a megabyte, or takes
/// longer than the timeout (it is then killed). stdin and stderr are closed to it.
std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds timeout);

/// Runs a program to its end and hands each line that it writes, to stdout or stderr, to `on_line`. Its exit code (128
/// and the signal if one ended it); nullopt if it cannot be started. stdin is closed to it. It is ended once
/// `is_enough` says so, which is asked after each line; it may be empty. `on_tick`, which may be empty too, is called
/// about once a second in which nothing is written.
std::optional<int> run_lines(const std::vector<std::string>& command,
                             const std::function<void(std::string_view)>& on_line,
                             const std::function<bool()>& is_enough = {}, const std::function<void()>& on_tick = {});

/// Whether a program is to read what this one is given on stdin.
enum class Input : uint8_t { kNone, kOwn };

/// The same with this program's stdout and stderr, for what users are to see as it is.
std::optional<int> run_through(const std::vector<std::string>& command, Input input = Input::kNone);

/// Becomes a program, with this one's stdin, stdout and stderr. Returns only if it cannot be started.
void become(const std::vector<std::string>& command);

/// A program that is given bytes on stdin and answers on stdout, while this lives; at its end it is killed. stderr is
/// closed to it. For one thread at a time.
class Conversation {
 public:
  /// Null if it cannot be started. SIGPIPE is ignored from then on: a program that has ended is told by send().
  static std::unique_ptr<Conversation> start(const std::vector<std::string>& command);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation();

  /// All of the bytes; false: the program has ended, or takes no more.
  bool send(std::span<const std::byte> bytes);
  /// As many as the span has; false: it has ended, or closed its stdout.
  bool receive(std::span<std::byte> bytes);
  /// Up to the end of a line of at most a megabyte, which is left out; nullopt: as receive().
  std::optional<std::string> receive_line();

 private:
  Conversation() = default;

  int process_ = -1, to_ = -1, from_ = -1;
};

}  // namespace argosy::cli
