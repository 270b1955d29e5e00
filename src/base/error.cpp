// Needs nothing else of ours: users of wheels compile it, too (apps/library).
#include "base/error.h"

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
  if (location.call_index > 0) text += ", call " + std::to_string(location.call_index);
  if (!location.file.empty()) {
    if (!text.empty()) text += ", ";
    text += location.file + ':' + std::to_string(location.line);
  }
  return text;
}

Error& Error::in(std::string what, std::optional<ModelLocation> where) {
  frames.push_back({std::move(what), std::move(where)});
  return *this;
}

std::string to_text(const Error& error) {
  std::string text = "error[" + std::string(code_name(error.code)) + "]: " + error.message + '\n';
  for (const ErrorFrame& frame : error.frames) {
    text += "  in " + frame.what + '\n';
    if (frame.where && !frame.where->empty()) text += "  from " + to_text(*frame.where) + '\n';
  }
  if (!error.hint.empty()) text += "  hint: " + error.hint + '\n';
  return text;
}

}  // namespace argosy
