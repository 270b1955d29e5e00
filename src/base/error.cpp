#include "base/error.h"

#include "base/text.h"

namespace argosy {

std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput: return "invalid-input";
    case ErrorCode::kUnsupportedOp: return "unsupported-op";
    case ErrorCode::kUnsupportedFeature: return "unsupported-feature";
    case ErrorCode::kUnsupportedVersion: return "unsupported-version";
    case ErrorCode::kCorruptFile: return "corrupt-file";
    case ErrorCode::kNotFound: return "not-found";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

std::string to_text(const ModelLocation& location) {
  std::string text = location.module_path;
  if (!location.class_name.empty()) {
    if (!text.empty()) text += ' ';
    text += '(' + location.class_name + ')';
  }
  if (location.call_index > 0) text += format(", call {}", location.call_index);
  if (!location.file.empty()) {
    if (!text.empty()) text += ", ";
    text += format("{}:{}", location.file, location.line);
  }
  return text;
}

Error& Error::in(std::string what, std::optional<ModelLocation> where) {
  frames.push_back({std::move(what), std::move(where)});
  return *this;
}

std::string to_text(const Error& error) {
  std::string text = format("error[{}]: {}\n", code_name(error.code), error.message);
  for (const ErrorFrame& frame : error.frames) {
    text += format("  in {}\n", frame.what);
    if (frame.where && !frame.where->empty()) text += format("  from {}\n", to_text(*frame.where));
  }
  if (!error.hint.empty()) text += format("  hint: {}\n", error.hint);
  return text;
}

}  // namespace argosy
