#include "frontends/pt2/json_field.h"

#include <limits>
#include <vector>

#include "base/text.h"

namespace argosy {
namespace {

std::string_view kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kBool: return "a boolean";
    case JsonKind::kInteger:
    case JsonKind::kUnsigned: return "an integer";
    case JsonKind::kDouble: return "a number";
    case JsonKind::kString: return "a string";
    case JsonKind::kArray: return "an array";
    case JsonKind::kObject: return "an object";
  }
  return "?";
}

bool is_plain_key(std::string_view key) {
  if (key.empty() || key.size() > 80) return false;
  for (char c : key) {
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_') return false;
  }
  return true;
}

}  // namespace

std::string JsonField::path() const {
  std::vector<const JsonField*> way;
  for (const JsonField* field = this; field != nullptr; field = field->parent_) way.push_back(field);
  std::string text(way.back()->key_);
  for (size_t i = way.size() - 1; i-- > 0;) {
    if (way[i]->index_ >= 0) {
      text += format("[{}]", way[i]->index_);
    } else if (is_plain_key(way[i]->key_)) {
      if (!text.empty()) text += '.';
      text += way[i]->key_;
    } else {
      text += format("[{}]", quoted(way[i]->key_));
    }
  }
  return text;
}

tl::unexpected<Error> JsonField::error(ErrorCode code, std::string_view what, std::string hint) const {
  return fail(code, format("{}: {}", path(), what), std::move(hint));
}

tl::unexpected<Error> JsonField::error(std::string_view what) const { return error(ErrorCode::kCorruptFile, what); }

tl::unexpected<Error> JsonField::expected(std::string_view kind) const {
  if (!is_valid()) return error(format("missing, expected {}", kind));
  return error(format("expected {}, found {}", kind, kind_name(view_.kind())));
}

Result<std::string_view> JsonField::string() const {
  if (is_valid()) {
    if (std::optional<std::string_view> value = view_.as_string()) return *value;
  }
  return expected("a string");
}

Result<int64_t> JsonField::integer() const {
  if (is_valid()) {
    if (std::optional<int64_t> value = view_.as_integer()) return *value;
  }
  return expected("an integer of 64 bits");
}

Result<bool> JsonField::boolean() const {
  if (is_valid()) {
    if (std::optional<bool> value = view_.as_bool()) return *value;
  }
  return expected("a boolean");
}

Result<double> JsonField::number() const {
  if (is_valid()) {
    if (std::optional<double> value = view_.as_double()) return *value;
    if (std::optional<std::string_view> text = view_.as_string()) {
      if (*text == "Infinity") return std::numeric_limits<double>::infinity();
      if (*text == "-Infinity") return -std::numeric_limits<double>::infinity();
      if (*text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    }
  }
  return expected("a number");
}

Status JsonField::require_array() const {
  if (!view_.is_array()) return expected("an array");
  return {};
}

Status JsonField::require_object() const {
  if (!view_.is_object()) return expected("an object");
  return {};
}

Result<std::pair<std::string_view, JsonView>> JsonField::tag() const {
  if (!view_.is_object()) return expected("an object with one member");
  auto found = view_.only_member();
  if (found.first.empty()) return error("expected an object with exactly one member");
  return found;
}

}  // namespace argosy
