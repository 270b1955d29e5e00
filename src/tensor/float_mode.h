#pragma once

#include <cfenv>

namespace argosy {

/// The thread's default rounding and subnormals for as long as this lives: hosts change them (a library built with
/// -ffast-math does when it is loaded). The arithmetic must be in a function that the compiler cannot see into from
/// here, or it may be moved out. Some 100 ns; internal to this layer.
class DefaultFloatMode {
 public:
  DefaultFloatMode() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatMode() { std::fesetenv(&saved_); }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace argosy
