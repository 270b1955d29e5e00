#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/json.h"

namespace argosy {

/// A place in a JSON text together with the way to it, so that an error can say `graph.nodes[3].inputs[1].arg`. Lives
/// on the stack, points at its parent (which must outlive it), and writes the path only when asked: reading costs
/// nothing for it.
class JsonField {
 public:
  JsonField(JsonView view, std::string_view name) : view_(view), key_(name) {}

  JsonView view() const { return view_; }
  bool is_valid() const { return view_.is_valid(); }
  std::string path() const;

  /// The member of that name, valid or not.
  JsonField member(std::string_view key) const { return JsonField(view_.find(key), this, key, -1); }
  /// An element that iteration found.
  JsonField item(JsonView element, int64_t index) const { return JsonField(element, this, {}, index); }
  JsonField child(std::string_view key, JsonView value) const { return JsonField(value, this, key, -1); }

  // Readers of a value that must be there; the error names the path and what was found.
  Result<std::string_view> string() const;
  Result<int64_t> integer() const;
  Result<bool> boolean() const;
  /// A number, or one of the strings "Infinity", "-Infinity", "NaN".
  Result<double> number() const;
  Status require_array() const;
  Status require_object() const;
  /// The only member of a tagged union.
  Result<std::pair<std::string_view, JsonView>> tag() const;

  /// An error of code kCorruptFile: "<path>: <what>".
  tl::unexpected<Error> error(std::string_view what) const;
  tl::unexpected<Error> error(ErrorCode code, std::string_view what, std::string hint = {}) const;

 private:
  JsonField(JsonView view, const JsonField* parent, std::string_view key, int64_t index)
      : view_(view), parent_(parent), key_(key), index_(index) {}
  tl::unexpected<Error> expected(std::string_view kind) const;

  JsonView view_;
  const JsonField* parent_ = nullptr;
  std::string_view key_;
  int64_t index_ = -1;
};

}  // namespace argosy
