#include "ir/text_syntax.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace argosy {
namespace {

constexpr std::string_view kListNames[] = {"ints", "bools", "doubles", "strings", "values", "list"};
constexpr std::string_view kLayoutNames[] = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                             "sparse_bsr", "sparse_bsc", "mkldnn"};
constexpr std::string_view kFormatNames[] = {"contiguous", "channels_last", "channels_last_3d", "preserve"};
constexpr std::string_view kWeightNames[] = {"parameter", "buffer", "non_persistent_buffer", "constant"};
constexpr std::string_view kOutputNames[] = {"user", "loss", "buffer_mutation", "parameter_mutation", "input_mutation"};

template <size_t N, class Enum>
std::string_view pick(const std::string_view (&names)[N], Enum value) {
  auto index = static_cast<size_t>(value);
  return index < N ? names[index] : std::string_view("?");
}

template <class Enum, size_t N>
std::optional<Enum> look_up(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none. Overlong forms, surrogates and
// what lies beyond U+10FFFF are not well-formed.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto is_next = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return is_next(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
    return is_next(1) && is_next(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
    return is_next(1) && is_next(2) && is_next(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_bare_name(std::string_view name) {
  for (char c : name) {
    if (!is_name_char(c)) return false;
  }
  return !name.empty();
}

bool is_bare_word(std::string_view name) { return is_bare_name(name) && is_letter(name.front()); }

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    char c = text.front();
    size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += format("\\x{:02x}", static_cast<unsigned char>(c));
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_word(std::string& out, std::string_view name) {
  if (is_bare_word(name)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

std::string exact_double(double value) {
  auto bits = std::bit_cast<uint64_t>(value);
  if (std::isnan(value) && bits != std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())) {
    return format("nan:0x{:016x}", bits);
  }
  return format_double(value);
}

ListKind implied_list(const SchemaType& type) {
  if (type.is_list && type.list_depth > 1) return ListKind::kNested;
  switch (type.kind) {
    case SchemaKind::kTensor: return ListKind::kValues;
    case SchemaKind::kFloat:
    case SchemaKind::kSymFloat: return ListKind::kDoubles;
    case SchemaKind::kBool:
    case SchemaKind::kSymBool: return ListKind::kBools;
    case SchemaKind::kString: return ListKind::kStrings;
    default: return ListKind::kInts;
  }
}

SchemaType item_type(const SchemaType& type) {
  SchemaType item = type;
  item.is_optional = type.has_optional_items;
  item.has_optional_items = false;
  item.list_size = -1;
  if (type.is_list && type.list_depth > 1) {
    --item.list_depth;
  } else {
    item.is_list = false;
  }
  return item;
}

std::string_view name_of(ListKind kind) { return pick(kListNames, kind); }
std::string_view name_of(TensorLayout layout) { return pick(kLayoutNames, layout); }
std::string_view name_of(MemoryFormat kind) { return pick(kFormatNames, kind); }
std::string_view name_of(WeightKind kind) { return pick(kWeightNames, kind); }
std::string_view name_of(OutputKind kind) { return pick(kOutputNames, kind); }

std::optional<ListKind> list_kind_from(std::string_view name) { return look_up<ListKind>(kListNames, name); }
std::optional<TensorLayout> layout_from(std::string_view name) { return look_up<TensorLayout>(kLayoutNames, name); }
std::optional<MemoryFormat> memory_format_from(std::string_view name) {
  return look_up<MemoryFormat>(kFormatNames, name);
}
std::optional<WeightKind> weight_kind_from(std::string_view name) { return look_up<WeightKind>(kWeightNames, name); }
std::optional<OutputKind> output_kind_from(std::string_view name) { return look_up<OutputKind>(kOutputNames, name); }

std::vector<InputSpec> default_inputs(const Graph& entry) {
  std::vector<InputSpec> inputs;
  for (ValueId id : entry.inputs()) inputs.push_back({.name = entry[id].name, .value = id, .constant = None{}});
  return inputs;
}

std::vector<OutputSpec> default_outputs(const Graph& entry) { return std::vector<OutputSpec>(entry.outputs().size()); }

std::optional<SymRange> stated_range(const SymContext& symbols, SymExpr symbol) {
  SymAssumptions assumptions = symbols.assumptions(symbol);
  if (!assumptions.is_integer) return std::nullopt;  // ranges are of integers
  SymRange range = symbols.range(symbol);
  SymRange usual;
  if (assumptions.is_positive) {
    usual.min = 1;
  } else if (assumptions.is_nonnegative) {
    usual.min = 0;
  }
  if (range == usual) return std::nullopt;
  return range;
}

}  // namespace argosy
