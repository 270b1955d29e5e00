#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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

}  // namespace argosy::cli
