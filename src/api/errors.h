#pragma once

#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"

namespace argosy::api {

/// What a program that links the library gets of `work(diagnostics)`: one error, whose message has the further problems
/// that are in the diagnostics, and no exception of ours.
template <class Value, class Work>
Result<Value> or_error(Work work) {
  Diagnostics diagnostics;
  try {
    Result<Value> done = work(diagnostics);
    if (done) return done;
    Error error = std::move(done.error());
    for (const Error& other : diagnostics.errors) {
      if (other.message != error.message) error.message += format("; {}", other.message);
    }
    return fail(std::move(error));
  } catch (const InternalError& bug) {
    return fail(ErrorCode::kInternal, bug.what(), "this is a bug in argosy; please report it");
  }
}

}  // namespace argosy::api
