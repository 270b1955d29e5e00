#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "ir/schema.h"

namespace argosy {

/// Schema texts by op name, parsed only when a program needs them: an installed torch has thousands, a program uses a
/// hundred.
class SchemaLibrary {
 public:
  SchemaLibrary() = default;

  /// Reads a schema file: one text a line as torch prints it; empty lines and lines that start with '#' do not count.
  static Result<SchemaLibrary> load(const std::filesystem::path& path);
  /// Adds one text; only its name is looked at now. The same text again is fine, another one for a known op is not.
  Status add(std::string_view text);
  bool contains(std::string_view op_name) const { return texts_.contains(std::string(op_name)); }
  size_t size() const { return texts_.size(); }

  /// The op's id in `table`, adding its schema from here if the table lacks it; nullopt: nobody knows the op.
  Result<std::optional<OpId>> resolve(std::string_view op_name, SchemaTable& table) const;

 private:
  std::unordered_map<std::string, std::string> texts_;
};

}  // namespace argosy
