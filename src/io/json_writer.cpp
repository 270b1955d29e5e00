#include <cmath>

#include "base/text.h"
#include "io/json.h"

namespace argosy {
namespace {

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out += text.substr(copied, i - copied);
    copied = i + 1;
    switch (byte) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += format("\\u{:04x}", byte);
    }
  }
  out += text.substr(copied);
  out += '"';
}

}  // namespace

void JsonWriter::new_line() {
  text_ += '\n';
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (needs_comma_) text_ += ',';
  if (layout_ == Layout::kIndented && depth_ > 0) new_line();
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  text_ += '{';
  ++depth_;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  text_ += '[';
  ++depth_;
  needs_comma_ = false;
  return *this;
}

// needs_comma_ is still false exactly when the container is empty: then both brackets stay on one line.
JsonWriter& JsonWriter::end_object() {
  --depth_;
  if (layout_ == Layout::kIndented && needs_comma_) new_line();
  text_ += '}';
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  --depth_;
  if (layout_ == Layout::kIndented && needs_comma_) new_line();
  text_ += ']';
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_quoted(text_, name);
  text_ += layout_ == Layout::kIndented ? ": " : ":";
  after_key_ = true;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_quoted(text_, text);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(int64_t number) {
  before_value();
  text_ += format("{}", number);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t number) {
  before_value();
  text_ += format("{}", number);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (std::isnan(number)) return value("NaN");
  if (std::isinf(number)) return value(number < 0 ? "-Infinity" : "Infinity");
  before_value();
  text_ += format_double(number);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  before_value();
  text_ += flag ? "true" : "false";
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  text_ += "null";
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(JsonView view) {
  if (!view.is_valid()) return null();
  switch (view.kind()) {
    case JsonKind::kNull: return null();
    case JsonKind::kBool: return value(*view.as_bool());
    case JsonKind::kInteger: return value(*view.as_integer());
    case JsonKind::kUnsigned: return value(*view.as_unsigned());
    case JsonKind::kDouble: return value(*view.as_double());
    case JsonKind::kString: return value(*view.as_string());
    case JsonKind::kArray:
      begin_array();
      for (JsonView item : view.items()) value(item);  // a document's depth is bounded, hence this recursion
      return end_array();
    case JsonKind::kObject:
      begin_object();
      for (auto [name, member] : view.members()) key(name).value(member);
      return end_object();
  }
  return *this;
}

}  // namespace argosy
