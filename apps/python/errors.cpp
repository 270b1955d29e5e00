#include <string>

#include "bindings.h"

namespace nb = nanobind;

namespace argosy {

void raise(const Error& error) {
  // The class lives in Python, where its attributes are typed and documented.
  nb::object type = nb::module_::import_("argosy.errors").attr("ExportError");
  nb::object node = nb::none(), location = nb::none();
  constexpr std::string_view kNode = "node ";
  for (const ErrorFrame& frame : error.frames) {
    if (node.is_none() && frame.what.starts_with(kNode)) {
      std::string text = frame.what.substr(kNode.size());
      node = nb::str(text.data(), text.size());
    }
    if (location.is_none() && frame.where && !frame.where->empty()) {
      std::string text = to_text(*frame.where);
      location = nb::str(text.data(), text.size());
    }
  }
  std::string details = to_text(error);
  std::string_view code = code_name(error.code);
  nb::object instance =
      type(nb::str(error.message.data(), error.message.size()), nb::arg("code") = nb::str(code.data(), code.size()),
           nb::arg("node") = node, nb::arg("location") = location,
           nb::arg("hint") = nb::str(error.hint.data(), error.hint.size()),
           nb::arg("details") = nb::str(details.data(), details.size()));
  PyErr_SetObject(type.ptr(), instance.ptr());
  nb::raise_python_error();
}

}  // namespace argosy
