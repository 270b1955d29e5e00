#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace argosy {

/// A broken invariant of ours, never something that input can cause. Caught in three places only: the pass pipeline,
/// the CLI's main and the Python border.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_internal_error(std::string_view condition, const char* file, int line,
                                       const std::string& detail);

}  // namespace argosy

/// ARGOSY_CHECK(condition, detail): throws InternalError when a condition that our own code guarantees does not hold.
#define ARGOSY_CHECK(condition, detail) \
  ((condition) ? void(0) : ::argosy::throw_internal_error(#condition, __FILE__, __LINE__, detail))
