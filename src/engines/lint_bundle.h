#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/lint_program.h"
#include "io/json.h"
#include "io/onnx/onnx_model.h"

namespace argosy::engines {

/// A file of a folder that is linted. Names of files are relative, with '/'.
struct LintedFile {
  std::string name;
  uint64_t size = 0;
  bool is_regular = false;  // after symbolic links
  bool leaves = false;      // a link to something outside the folder
};

struct LintedGraph {
  struct Weights {
    uint64_t count = 0, bytes = 0;
  };
  std::string file;                           // "onnx/model.onnx"
  std::optional<OnnxModel> model;             // without its initializers; none: it could not be read
  std::string problem;                        // why
  std::map<std::string, Weights> weights;     // initializers by their element type, "f32"
  std::set<std::string> defaults;             // inputs that callers may leave out: initializers, too
  std::vector<std::string> external_numbers;  // small i64 tensors with external data, as shapes are

  const OnnxValue* input(std::string_view name) const;   // null if there is none
  const OnnxValue* output(std::string_view name) const;  // null if there is none
  uint64_t count_of(std::string_view domain, std::string_view op) const;
  /// "onnx" of "onnx/model.onnx"; "" at the top.
  std::string_view folder() const;
  /// "model" of "onnx/model.onnx".
  std::string_view stem() const;
};

/// Which tokens a tokenizer.json has.
class LintedVocabulary {
 public:
  explicit LintedVocabulary(JsonView tokenizer);
  bool is_empty() const { return size_ == 0; }
  int64_t size() const { return size_; }  // the largest id plus one
  bool has(int64_t id) const;
  std::optional<int64_t> id_of(std::string_view token) const;

 private:
  JsonView vocabulary_, added_;
  int64_t size_ = 0;
  std::vector<bool> ids_;
};

/// A folder as lint rules see it: everything that they ask for has been read, nothing is read twice. Files may hold
/// anything.
class LintedBundle {
 public:
  /// Fails only if the folder cannot be listed.
  static Result<LintedBundle> read(const std::filesystem::path& folder, const ProgramReader& reader = {});

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<LintedFile>& files() const { return files_; }           // sorted by name
  const std::vector<LintedGraph>& graphs() const { return graphs_; }        // sorted by name
  const std::vector<LintedProgram>& programs() const { return programs_; }  // sorted by name
  const LintedFile* file(std::string_view name) const;                      // null if there is none
  bool has(std::string_view name) const;                                    // as a regular file
  const LintedGraph* graph(std::string_view file) const;                    // null if there is none
  bool has_more_files() const { return has_more_files_; }                   // than are listed

  /// The root of a JSON file at the top; an invalid view if there is none or it cannot be read.
  JsonView json(std::string_view file) const;
  /// JSON files that are there and cannot be read, with the reason.
  const std::map<std::string, std::string, std::less<>>& unreadable_json() const { return unreadable_json_; }
  const std::optional<LintedVocabulary>& vocabulary() const { return vocabulary_; }

  JsonView config() const { return json("config.json"); }
  std::string_view model_type() const;
  /// The part of config.json that describes the text decoder.
  JsonView text_config() const;
  /// A number of the text decoder's configuration, by the first of these names that it has.
  std::optional<int64_t> text_number(std::initializer_list<std::string_view> names) const;

 private:
  std::filesystem::path folder_;
  std::vector<LintedFile> files_;
  std::vector<LintedGraph> graphs_;
  std::vector<LintedProgram> programs_;
  bool has_more_files_ = false;
  std::map<std::string, JsonDocument, std::less<>> json_;
  std::map<std::string, std::string, std::less<>> unreadable_json_;
  std::optional<LintedVocabulary> vocabulary_;
};

/// The integers of a value that is one or a list of them.
std::vector<int64_t> integers(JsonView value);

}  // namespace argosy::engines
