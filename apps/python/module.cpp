#include <exception>
#include <string>

#include "argosy/version.h"
#include "base/check.h"
#include "bindings.h"

namespace nb = nanobind;

namespace {

// A bug of ours reaches Python as the same exception as everything else, never as an abort.
void translate_internal_error(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const argosy::InternalError& internal) {
    try {
      argosy::raise({argosy::ErrorCode::kInternal, internal.what(), "this is a bug in argosy; please report it"});
    } catch (nb::python_error& error) {
      error.restore();
    }
  }
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The C++ core of argosy.";
  module.attr("__version__") = nb::str(argosy::version().data(), argosy::version().size());
  nb::register_exception_translator(translate_internal_error);
  argosy::bind_checkpoint(module);
  argosy::bind_onnx(module);
  argosy::bind_executorch(module);
  argosy::bind_stamp(module);
}
