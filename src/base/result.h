#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace argosy {

/// A value, or the error that input caused. Same interface as std::expected.
template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

/// What a function returns to report an error: `return fail(ErrorCode::kIo, "cannot read", "check the path");`
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error(code, std::move(message), std::move(hint)));
}

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace argosy

#define ARGOSY_CONCAT_(a, b) a##b
#define ARGOSY_CONCAT(a, b) ARGOSY_CONCAT_(a, b)

/// ARGOSY_TRY(auto x, expression): unwraps a Result into x, or returns its error.
#define ARGOSY_TRY(declaration, expression) \
  ARGOSY_TRY_(ARGOSY_CONCAT(argosy_result_, __LINE__), declaration, expression)
#define ARGOSY_TRY_(result, declaration, expression)                                \
  auto result = (expression);                                                       \
  if (!result) return ::tl::unexpected<::argosy::Error>(std::move(result).error()); \
  declaration = *std::move(result)

/// ARGOSY_TRY_STATUS(expression): returns the error of a Status, if it has one.
#define ARGOSY_TRY_STATUS(expression)                                                               \
  do {                                                                                              \
    auto argosy_status = (expression);                                                              \
    if (!argosy_status) return ::tl::unexpected<::argosy::Error>(std::move(argosy_status).error()); \
  } while (false)
