#include "io/json.h"

#include <simdjson.h>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "io/json_locate.h"

namespace argosy {
namespace {

// A view is an index into simdjson's tape. Each tape word has a type in its top byte and a payload below: for a string
// its place in the string buffer, for '{' and '[' the index after the matching end and (bits 32..55) the saturated
// number of members; integers and doubles fill the following word.
constexpr uint64_t kPayloadMask = (uint64_t{1} << 56) - 1;
constexpr uint64_t kSaturatedCount = 0xFFFFFF;

const simdjson::dom::document& tape_of(const void* document) {
  return *static_cast<const simdjson::dom::document*>(document);
}
uint64_t word(const void* document, size_t index) { return tape_of(document).tape[index]; }
char type_at(const void* document, size_t index) { return static_cast<char>(word(document, index) >> 56); }

size_t next_index(const void* document, size_t index) {
  switch (type_at(document, index)) {
    case '{':
    case '[': return static_cast<uint32_t>(word(document, index));
    case 'l':
    case 'u':
    case 'd': return index + 2;
    default: return index + 1;
  }
}

/// Index of the closing word of the container at `index`.
size_t end_index(const void* document, size_t index) { return static_cast<uint32_t>(word(document, index)) - 1; }

std::string_view string_at(const void* document, size_t index) {
  const uint8_t* bytes = tape_of(document).string_buf.get() + (word(document, index) & kPayloadMask);
  uint32_t length;
  std::memcpy(&length, bytes, sizeof length);
  return {reinterpret_cast<const char*>(bytes + sizeof length), length};
}

std::string_view reason(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY: return "it is empty";
    case simdjson::UTF8_ERROR: return "it is not valid UTF-8";
    case simdjson::DEPTH_ERROR: return "it is nested more than 1024 levels deep";
    case simdjson::UNCLOSED_STRING: return "a string is not closed";
    case simdjson::UNESCAPED_CHARS: return "a string holds an unescaped control character";
    case simdjson::STRING_ERROR: return "a string holds a malformed escape";
    case simdjson::NUMBER_ERROR: return "a number is malformed or out of range";
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR: return "a word is neither true, false nor null";
    case simdjson::CAPACITY: return "it is too large";
    case simdjson::MEMALLOC: return "there is not enough memory to parse it";
    default: return "commas, colons, brackets or keys are missing or misplaced";
  }
}

/// An upper bound of the number of values: every one but the first follows one of these characters. Texts that are too
/// short to hold more than `limit` are not counted.
size_t count_values_at_most(std::string_view text, size_t limit) {
  if (text.size() <= limit) return 0;
  size_t total = 0;
  // Counts of a block fit a byte, which is what makes the loop fast.
  for (size_t start = 0; start < text.size(); start += 128) {
    uint8_t count = 0;
    for (char c : text.substr(start, 128)) {
      count = static_cast<uint8_t>(count + ((c == ',') | (c == ':') | (c == '[') | (c == '{')));
    }
    total += count;
  }
  return total;
}

tl::unexpected<Error> refuse(std::string_view name, std::string_view why) {
  return fail(ErrorCode::kCorruptFile, format("{} is not valid JSON: {}", name, why),
              "the file is damaged or is not what its name says; get or write it again");
}

}  // namespace

JsonKind JsonView::kind() const {
  ARGOSY_CHECK(is_valid(), "kind of an invalid JSON view");
  switch (type_at(document_, index_)) {
    case 'n': return JsonKind::kNull;
    case 't':
    case 'f': return JsonKind::kBool;
    case 'l': return JsonKind::kInteger;
    case 'u': return JsonKind::kUnsigned;
    case 'd': return JsonKind::kDouble;
    case '"': return JsonKind::kString;
    case '[': return JsonKind::kArray;
    case '{': return JsonKind::kObject;
    default: break;
  }
  throw_internal_error("known tape type", __FILE__, __LINE__, "unexpected word on the tape");
}

std::optional<bool> JsonView::as_bool() const {
  if (!is_valid() || kind() != JsonKind::kBool) return std::nullopt;
  return type_at(document_, index_) == 't';
}

std::optional<int64_t> JsonView::as_integer() const {
  // Integers are 'u' only when they do not fit int64.
  if (!is_valid() || kind() != JsonKind::kInteger) return std::nullopt;
  return static_cast<int64_t>(word(document_, index_ + 1));
}

std::optional<uint64_t> JsonView::as_unsigned() const {
  if (!is_valid()) return std::nullopt;
  uint64_t value =
      type_at(document_, index_) == 'l' || type_at(document_, index_) == 'u' ? word(document_, index_ + 1) : 0;
  switch (kind()) {
    case JsonKind::kInteger: return static_cast<int64_t>(value) < 0 ? std::nullopt : std::optional<uint64_t>(value);
    case JsonKind::kUnsigned: return value;
    default: return std::nullopt;
  }
}

std::optional<double> JsonView::as_double() const {
  if (!is_valid()) return std::nullopt;
  switch (kind()) {
    case JsonKind::kInteger: return static_cast<double>(static_cast<int64_t>(word(document_, index_ + 1)));
    case JsonKind::kUnsigned: return static_cast<double>(word(document_, index_ + 1));
    case JsonKind::kDouble: return std::bit_cast<double>(word(document_, index_ + 1));
    default: return std::nullopt;
  }
}

std::optional<std::string_view> JsonView::as_string() const {
  if (!is_valid() || kind() != JsonKind::kString) return std::nullopt;
  return string_at(document_, index_);
}

size_t JsonView::size() const {
  if (!is_object() && !is_array()) return 0;
  uint64_t count = (word(document_, index_) >> 32) & kSaturatedCount;
  if (count < kSaturatedCount) return count;
  size_t words = 0;
  for (size_t i = index_ + 1; i < end_index(document_, index_); i = next_index(document_, i)) ++words;
  return is_object() ? words / 2 : words;
}

JsonView JsonView::find(std::string_view key) const {
  if (!is_object()) return {};
  size_t end = end_index(document_, index_);
  for (size_t i = index_ + 1; i < end; i = next_index(document_, i + 1)) {
    if (string_at(document_, i) == key) return {document_, i + 1};
  }
  return {};
}

std::pair<std::string_view, JsonView> JsonView::only_member() const {
  if (!is_object() || size() != 1) return {};
  return {string_at(document_, index_ + 1), JsonView(document_, index_ + 2)};
}

JsonView::Items JsonView::items() const { return is_array() ? Items{document_, index_} : Items{nullptr, 0}; }
JsonView::Members JsonView::members() const { return is_object() ? Members{document_, index_} : Members{nullptr, 0}; }

JsonView::ItemIterator JsonView::Items::begin() const {
  return document == nullptr ? ItemIterator() : ItemIterator(document, index + 1);
}
JsonView::ItemIterator JsonView::Items::end() const {
  return document == nullptr ? ItemIterator() : ItemIterator(document, end_index(document, index));
}
JsonView::MemberIterator JsonView::Members::begin() const {
  return document == nullptr ? MemberIterator() : MemberIterator(document, index + 1);
}
JsonView::MemberIterator JsonView::Members::end() const {
  return document == nullptr ? MemberIterator() : MemberIterator(document, end_index(document, index));
}

JsonView JsonView::ItemIterator::operator*() const { return {document_, index_}; }
JsonView::ItemIterator& JsonView::ItemIterator::operator++() {
  index_ = next_index(document_, index_);
  return *this;
}

std::pair<std::string_view, JsonView> JsonView::MemberIterator::operator*() const {
  return {string_at(document_, index_), JsonView(document_, index_ + 1)};
}
JsonView::MemberIterator& JsonView::MemberIterator::operator++() {
  index_ = next_index(document_, index_ + 1);
  return *this;
}

struct JsonDocument::Impl {
  simdjson::dom::document document;
};

JsonDocument::JsonDocument() : impl_(std::make_unique<Impl>()) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

// Index 0 is the root word that simdjson puts around every document.
JsonView JsonDocument::root() const { return {&impl_->document, 1}; }

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return refuse(name, format("it has {}, more than the {} that are read", format_bytes(text.size()),
                               format_bytes(limits.max_bytes)));
  }
  std::string copy;
  copy.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  copy = text;
  return parse_owned(std::move(copy), name, limits);
}

Result<JsonDocument> JsonDocument::parse_owned(std::string text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return refuse(name, format("it has {}, more than the {} that are read", format_bytes(text.size()),
                               format_bytes(limits.max_bytes)));
  }
  size_t values = count_values_at_most(text, limits.max_values);
  if (values > limits.max_values) {
    return refuse(name, format("it may hold {} values, more than the {} that are read", values, limits.max_values));
  }
  JsonDocument result;
  size_t length = text.size();
  // simdjson reads whole blocks past the end.
  text.resize(length + simdjson::SIMDJSON_PADDING, ' ');
  simdjson::dom::parser parser;
  simdjson::error_code error = parser.allocate(length, kMaxDepth);
  if (error == simdjson::SUCCESS) {
    error = parser.parse_into_document(result.impl_->document, text.data(), length, false).error();
  }
  if (error == simdjson::SUCCESS) return result;
  text.resize(length);
  if (error == simdjson::NUMBER_ERROR) {
    if (auto widened = widen_big_integers(text)) return parse_owned(*std::move(widened), name, limits);
  }
  auto position = locate_json_error(text, kMaxDepth);
  return refuse(name, position ? format("{} (at byte {})", reason(error), *position) : std::string(reason(error)));
}

}  // namespace argosy
