#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

/// Each code has a page in docs/errors/ named by code_name().
enum class ErrorCode : uint16_t {
  kInvalidInput,        // the caller or an input file asks for something that makes no sense
  kUnsupportedOp,       // an op that nothing here knows
  kUnsupportedFeature,  // a known thing used in a way that is not handled
  kUnsupportedVersion,  // a file of a format version that is not read
  kCorruptFile,         // a file that contradicts its own format
  kNotFound,            // a file, tensor or name that should be there
  kIo,                  // the operating system said no
  kInternal,            // a bug of ours
};

/// "corrupt-file" and the like: what users see in brackets.
std::string_view code_name(ErrorCode code);

/// Where in somebody's model a thing comes from. Empty fields are unknown.
struct ModelLocation {
  std::string file;         // transformers/models/llama/modeling_llama.py
  int line = 0;             // in that file
  std::string module_path;  // model.layers.3.mlp
  std::string class_name;   // LlamaMLP
  int call_index = 0;       // how often this module had been called before

  bool empty() const { return file.empty() && module_path.empty(); }
  friend bool operator==(const ModelLocation&, const ModelLocation&) = default;
};

/// "model.layers.3.mlp (LlamaMLP), modeling_llama.py:212"
std::string to_text(const ModelLocation& location);

/// One step of context around an error: what was being done or looked at, and where in the model that is.
struct ErrorFrame {
  std::string what;
  std::optional<ModelLocation> where;
};

/// What went wrong, in words for the user. `message` says what, with the values; `hint` says what to do.
/// Both in lower case and without a full stop.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string hint;
  std::vector<ErrorFrame> frames;  // innermost first

  Error() = default;
  Error(ErrorCode error_code, std::string text, std::string what_to_do = {})
      : code(error_code), message(std::move(text)), hint(std::move(what_to_do)) {}

  /// Adds context on the way up and returns the error, so that it can be chained.
  Error& in(std::string what, std::optional<ModelLocation> where = std::nullopt);
};

/// The error as a user reads it: several lines, ending in a line feed.
std::string to_text(const Error& error);

/// Errors that are collected, so that one run names every gap and not only the first; and notes, what the user of a
/// result that was made should know of it.
struct Diagnostics {
  std::vector<Error> errors;
  std::vector<std::string> notes;  // in lower case and without a full stop, like messages
};

}  // namespace argosy
