#include "subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/system.h"

namespace argosy::cli {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20;
constexpr size_t kMaxLine = 10'000;
constexpr int kTickMilliseconds = 1000;

enum class Errors : uint8_t { kDrop, kWithOutput };

/// As the system wants arguments; they live as long as the command.
std::vector<char*> pointers_to(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

/// Uses up the actions.
bool spawn(const std::vector<std::string>& command, posix_spawn_file_actions_t& actions, pid_t& pid) {
  std::vector<char*> arguments = pointers_to(command);
  int error = posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), system::environment());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Starts the program with its stdout in a pipe whose reading end is returned; -1 if that fails.
int start(const std::vector<std::string>& command, Errors errors, pid_t& pid) {
  int ends[2];
  if (!system::open_pipe(ends)) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (errors == Errors::kWithOutput) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  bool is_started = spawn(command, actions, pid);
  close(ends[1]);
  if (is_started) return ends[0];
  close(ends[0]);
  return -1;
}

/// True: everything was read up to the end of the stream.
bool read_all(int descriptor, std::string& text, std::chrono::steady_clock::time_point deadline) {
  char buffer[4096];
  while (text.size() < kMaxOutput) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{descriptor, POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
    ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count < 0) return false;
    if (count == 0) return true;
    text.append(buffer, static_cast<size_t>(count));
  }
  return false;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable == nullptr ? "" : variable;
  while (!folders.empty()) {
    size_t end = folders.find(':');
    std::string path(folders.substr(0, end));
    folders.remove_prefix(end == std::string_view::npos ? folders.size() : end + 1);
    if (path.empty()) continue;
    path += "/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

std::optional<std::string> find_beside(const std::string& name) {
  std::filesystem::path self = system::own_program();
  std::string path = (self.parent_path() / name).string();
  if (self.empty() || access(path.c_str(), X_OK) != 0) return std::nullopt;
  return path;
}

std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds timeout) {
  pid_t pid = 0;
  int descriptor = start(command, Errors::kDrop, pid);
  if (descriptor < 0) return std::nullopt;
  std::string text;
  bool is_complete = read_all(descriptor, text, std::chrono::steady_clock::now() + timeout);
  close(descriptor);
  if (!is_complete) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!is_complete || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::optional<int> run_lines(const std::vector<std::string>& command,
                             const std::function<void(std::string_view)>& on_line,
                             const std::function<bool()>& is_enough, const std::function<void()>& on_tick) {
  pid_t pid = 0;
  int descriptor = start(command, Errors::kWithOutput, pid);
  if (descriptor < 0) return std::nullopt;
  std::string line;
  char buffer[4096];
  bool is_ended = false;
  for (;;) {
    pollfd waiting{descriptor, POLLIN, 0};
    if (on_tick && poll(&waiting, 1, kTickMilliseconds) == 0) {
      on_tick();
      continue;
    }
    ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (char c : std::string_view(buffer, static_cast<size_t>(count))) {
      // A bar that redraws itself is a line each time; one without end is cut.
      if (c != '\n' && c != '\r' && line.size() < kMaxLine) {
        line += c;
        continue;
      }
      if (!line.empty()) on_line(line);
      line.clear();
    }
    if (!is_ended && is_enough && is_enough()) {
      kill(pid, SIGTERM);
      is_ended = true;
    }
  }
  if (!line.empty()) on_line(line);
  close(descriptor);
  return exit_code_of(pid);
}

std::optional<int> run_through(const std::vector<std::string>& command, Input input) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input == Input::kNone) posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t pid = 0;
  if (!spawn(command, actions, pid)) return std::nullopt;
  return exit_code_of(pid);
}

void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments = pointers_to(command);
  std::fflush(nullptr);
  execve(arguments[0], arguments.data(), system::environment());
}

std::unique_ptr<Conversation> Conversation::start(const std::vector<std::string>& command) {
  int to[2], from[2];
  if (!system::open_pipe(to)) return nullptr;
  if (!system::open_pipe(from)) {
    close(to[0]);
    close(to[1]);
    return nullptr;
  }
  signal(SIGPIPE, SIG_IGN);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::unique_ptr<Conversation> started(new Conversation);
  started->to_ = to[1];
  started->from_ = from[0];
  pid_t pid = 0;
  if (spawn(command, actions, pid)) started->process_ = pid;
  close(to[0]);
  close(from[1]);
  return started->process_ < 0 ? nullptr : std::move(started);
}

Conversation::~Conversation() {
  close(to_);
  close(from_);
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  exit_code_of(process_);
}

bool Conversation::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(to_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool Conversation::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = read(from_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

std::optional<std::string> Conversation::receive_line() {
  std::string line;
  std::byte next;
  while (line.size() < kMaxOutput && receive({&next, 1})) {
    if (next == std::byte{'\n'}) return line;
    line += static_cast<char>(next);
  }
  return std::nullopt;
}

}  // namespace argosy::cli
