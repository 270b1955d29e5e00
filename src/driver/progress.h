#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace argosy {

/// How far a long piece of work has come.
struct Progress {
  std::string task;         // "write out.pt2"
  uint64_t bytes_done = 0;  // never decreases
  uint64_t bytes_total = 0;
  bool is_finished = false;  // the last call of a task that succeeded
};

/// Called from time to time, by the thread that does the work. Must be cheap. May be empty.
using ProgressHook = std::function<void(const Progress&)>;

}  // namespace argosy
