#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace argosy {

enum class JsonKind : uint8_t { kNull, kBool, kInteger, kUnsigned, kDouble, kString, kArray, kObject };

/// A value inside a JsonDocument: two words, passed by value, valid as long as the document. The as_… readers return
/// nullopt when the kind differs; callers that need a value turn that into an error naming the path.
class JsonView {
 public:
  JsonView() = default;
  bool is_valid() const { return document_ != nullptr; }
  JsonKind kind() const;
  bool is_null() const { return is_valid() && kind() == JsonKind::kNull; }
  bool is_object() const { return is_valid() && kind() == JsonKind::kObject; }
  bool is_array() const { return is_valid() && kind() == JsonKind::kArray; }

  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_integer() const;    // integers that fit int64
  std::optional<uint64_t> as_unsigned() const;  // integers that fit uint64
  std::optional<double> as_double() const;      // any number
  std::optional<std::string_view> as_string() const;

  /// Number of elements or members (walks them; O(n) for more than 16 million).
  size_t size() const;
  /// The member of that name of an object; an invalid view if there is none or this is not an object. O(members). Of
  /// duplicate keys it finds the first; who must refuse duplicates walks members().
  JsonView find(std::string_view key) const;
  /// The only member of an object that has exactly one: how tagged unions are written. Key empty if it is not so.
  std::pair<std::string_view, JsonView> only_member() const;

  /// Iteration in document order: for (JsonView item : view.items()), for (auto [key, value] : view.members()). Empty
  /// for other kinds.
  class ItemIterator;
  class MemberIterator;
  struct Items {
    ItemIterator begin() const, end() const;
    const void* document;
    size_t index;
  };
  struct Members {
    MemberIterator begin() const, end() const;
    const void* document;
    size_t index;
  };
  Items items() const;
  Members members() const;

 private:
  friend class JsonDocument;
  friend class ItemIterator;
  friend class MemberIterator;
  JsonView(const void* document, size_t index) : document_(document), index_(index) {}
  const void* document_ = nullptr;
  size_t index_ = 0;
};

/// The string under a key; empty if there is none.
inline std::string text_at(JsonView object, std::string_view key) {
  return std::string(object.find(key).as_string().value_or(""));
}

class JsonView::ItemIterator {
 public:
  JsonView operator*() const;
  ItemIterator& operator++();
  bool operator!=(const ItemIterator& other) const { return index_ != other.index_; }

 private:
  friend struct JsonView::Items;
  ItemIterator() = default;
  ItemIterator(const void* document, size_t index) : document_(document), index_(index) {}
  const void* document_ = nullptr;
  size_t index_ = 0;
};

class JsonView::MemberIterator {
 public:
  std::pair<std::string_view, JsonView> operator*() const;
  MemberIterator& operator++();
  bool operator!=(const MemberIterator& other) const { return index_ != other.index_; }

 private:
  friend struct JsonView::Members;
  MemberIterator() = default;
  MemberIterator(const void* document, size_t index) : document_(document), index_(index) {}
  const void* document_ = nullptr;
  size_t index_ = 0;
};

/// What a text may cost. Parsing takes up to about 28 bytes for each value besides the text and its strings, so that
/// the defaults stay below 1 GB of memory.
struct JsonLimits {
  size_t max_bytes = size_t{512} << 20;
  size_t max_values = size_t{24} << 20;  // an upper bound of their number, counted before parsing, is held against this
};

/// A parsed JSON text. Owns what its views point at; the text itself may go. Depth is bounded (1024), UTF-8 is checked.
/// Integers that do not fit 64 bits are read as doubles.
class JsonDocument {
 public:
  static constexpr size_t kMaxDepth = 1024;

  /// `name` is the file or entry, for messages. Errors are kCorruptFile and give the byte position where it is known.
  static Result<JsonDocument> parse(std::string_view text, std::string_view name, const JsonLimits& limits = {});
  /// The same without a copy of the text, which is used up: for large ones.
  static Result<JsonDocument> parse_owned(std::string text, std::string_view name, const JsonLimits& limits = {});
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();
  JsonView root() const;

 private:
  JsonDocument();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes JSON in order of the calls, compact or indented; checks nothing but commas. Deterministic.
/// Doubles: shortest text that reads back; inf and nan are written as the strings torch uses ("Infinity", "-Infinity",
/// "NaN").
class JsonWriter {
 public:
  enum class Layout : uint8_t { kCompact, kIndented };
  explicit JsonWriter(Layout layout = Layout::kCompact) : layout_(layout) {}
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(unsigned number) { return value(static_cast<uint64_t>(number)); }
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool flag);
  JsonWriter& null();
  /// Copies a parsed value as it is.
  JsonWriter& value(JsonView view);
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void before_value();
  void new_line();
  Layout layout_;
  std::string text_;
  int depth_ = 0;
  bool needs_comma_ = false;
  bool after_key_ = false;
};

}  // namespace argosy
