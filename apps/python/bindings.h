#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/result.h"

namespace argosy {

/// Raises argosy.ExportError for an error of ours. The GIL must be held.
[[noreturn]] void raise(const Error& error);

/// The value of a result, or argosy.ExportError.
template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

// One function per area, called by module.cpp in this order.
void bind_checkpoint(nanobind::module_& module);
void bind_onnx(nanobind::module_& module);
void bind_executorch(nanobind::module_& module);
void bind_stamp(nanobind::module_& module);

}  // namespace argosy
