#include "ir/schema.h"

#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

constexpr size_t kMaxSchemaLength = 64 * 1024;

struct KindName {
  std::string_view name;
  SchemaKind kind;
};

constexpr KindName kKindNames[] = {
    {"Tensor", SchemaKind::kTensor},
    {"Scalar", SchemaKind::kScalar},
    {"number", SchemaKind::kScalar},
    {"int", SchemaKind::kInt},
    {"SymInt", SchemaKind::kSymInt},
    {"float", SchemaKind::kFloat},
    {"SymFloat", SchemaKind::kSymFloat},
    {"bool", SchemaKind::kBool},
    {"SymBool", SchemaKind::kSymBool},
    {"str", SchemaKind::kString},
    {"ScalarType", SchemaKind::kDType},
    {"Device", SchemaKind::kDevice},
    {"Layout", SchemaKind::kLayout},
    {"MemoryFormat", SchemaKind::kMemoryFormat},
    {"Generator", SchemaKind::kGenerator},
    {"Stream", SchemaKind::kStream},
    {"Storage", SchemaKind::kStorage},
    {"QScheme", SchemaKind::kQScheme},
    {"Dimname", SchemaKind::kDimname},
    {"Graph", SchemaKind::kGraph},
    {"Any", SchemaKind::kAny},
};

bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Recursive descent over one schema text. Every reader leaves the position behind what it read.
class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Result<OpSchema> parse() {
    if (text_.size() > kMaxSchemaLength) return error("schema is too long");
    OpSchema schema;
    schema.text = text_;
    size_t open = text_.find('(');
    if (open == std::string_view::npos || open == 0) return error("expected a name and '('");
    std::string_view name = text_.substr(0, open);
    for (char c : name) {
      if (!is_identifier_char(c) && c != '.' && c != ':') return error("unexpected character in the op's name");
    }
    schema.name = op_name_of(name);
    position_ = open + 1;
    ARGOSY_TRY_STATUS(parse_arguments(schema));
    ARGOSY_TRY_STATUS(expect("->"));
    ARGOSY_TRY_STATUS(parse_returns(schema));
    skip_spaces();
    if (position_ != text_.size()) return error("unexpected text at the end");
    return schema;
  }

 private:
  tl::unexpected<Error> error(std::string_view what) const {
    return fail(ErrorCode::kInvalidInput,
                format("bad op schema {}: {} at column {}", quoted(text_), what, position_ + 1));
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  Status expect(std::string_view token) {
    if (!accept(token)) return error(format("expected '{}'", token));
    return {};
  }

  std::string_view read_name() {
    skip_spaces();
    size_t start = position_;
    while (position_ < text_.size() && is_identifier_char(text_[position_])) ++position_;
    return text_.substr(start, position_ - start);
  }

  Status parse_arguments(OpSchema& schema) {
    bool is_keyword_only = false;
    if (accept(")")) return {};
    do {
      if (accept("...")) {
        schema.is_variadic = true;
        break;
      }
      if (accept("*")) {
        is_keyword_only = true;
        continue;
      }
      SchemaArgument argument;
      argument.is_keyword_only = is_keyword_only;
      ARGOSY_TRY_STATUS(parse_type(argument.type, argument.alias, argument.is_written));
      argument.name = read_name();
      if (argument.name.empty()) return error("expected the argument's name");
      if (accept("=")) {
        ARGOSY_TRY(argument.default_value, parse_default(argument.type));
      }
      if (schema.find_argument(argument.name)) return error(format("argument '{}' occurs twice", argument.name));
      schema.arguments.push_back(std::move(argument));
    } while (accept(","));
    return expect(")");
  }

  Status parse_returns(OpSchema& schema) {
    if (!accept("(")) return parse_return(schema);
    if (accept(")")) return {};
    do {
      if (accept("...")) {
        schema.returns.push_back(
            {.name = "", .type = {.kind = SchemaKind::kAny, .is_list = true}, .alias = "", .is_written = false});
        continue;
      }
      ARGOSY_TRY_STATUS(parse_return(schema));
    } while (accept(","));
    return expect(")");
  }

  Status parse_return(OpSchema& schema) {
    SchemaReturn result;
    ARGOSY_TRY_STATUS(parse_type(result.type, result.alias, result.is_written));
    result.name = read_name();
    schema.returns.push_back(std::move(result));
    return {};
  }

  // Type with its alias set and suffixes: Tensor(a!)?, int[2]?, Tensor?[], Tensor(a!)[], Tensor(b -> *)[].
  Status parse_type(SchemaType& type, std::string& alias, bool& is_written) {
    ARGOSY_TRY_STATUS(parse_base_type(type));
    if (position_ < text_.size() && text_[position_] == '(') ARGOSY_TRY_STATUS(parse_alias(alias, is_written));
    bool is_base_optional = false;
    while (position_ < text_.size()) {
      if (text_[position_] == '?') {
        ++position_;
        (type.is_list ? type.is_optional : is_base_optional) = true;
      } else if (text_[position_] == '[') {
        ARGOSY_TRY_STATUS(parse_list_suffix(type));
      } else if (text_[position_] == '(' && alias.empty()) {
        ARGOSY_TRY_STATUS(parse_alias(alias, is_written));
      } else {
        break;
      }
    }
    (type.is_list ? type.has_optional_items : type.is_optional) |= is_base_optional;
    return {};
  }

  Status parse_base_type(SchemaType& type) {
    skip_spaces();
    if (text_.substr(position_, 9) == "__torch__") {  // a TorchScript class: __torch__.torch.classes.x.Y
      while (position_ < text_.size() && (is_identifier_char(text_[position_]) || text_[position_] == '.')) ++position_;
      return {};
    }
    std::string_view name = read_name();
    if (name.empty()) return error("expected a type");
    // Types of TorchScript that nest others: Dict(str, Tensor), Future(t), t and the like. Nothing fits them but None.
    for (const KindName& known : kKindNames) {
      if (known.name == name) type.kind = known.kind;
    }
    if (type.kind == SchemaKind::kOther && position_ < text_.size() && text_[position_] == '(')
      return skip_parentheses();
    return {};
  }

  Status skip_parentheses() {
    int depth = 0;
    do {
      if (position_ >= text_.size()) return error("missing ')'");
      char c = text_[position_++];
      if (c == '(') ++depth;
      if (c == ')') --depth;
    } while (depth > 0);
    return {};
  }

  Status parse_alias(std::string& alias, bool& is_written) {
    ++position_;  // '('
    size_t close = text_.find(')', position_);
    if (close == std::string_view::npos) return error("missing ')' of an alias set");
    std::string_view inside = text_.substr(position_, close - position_);
    std::string_view before = inside.substr(0, inside.find("->"));
    while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
    if (!before.empty() && before.back() == '!') {
      is_written = true;
      before.remove_suffix(1);
    }
    if (before.empty()) return error("empty alias set");
    alias = before;
    position_ = close + 1;
    return {};
  }

  Status parse_list_suffix(SchemaType& type) {
    ++position_;  // '['
    if (type.is_list) ++type.list_depth;
    type.is_list = true;
    int size = -1;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      size = std::max(size, 0) * 10 + (text_[position_++] - '0');
      if (size > 1000) return error("list size is too large");
    }
    type.list_size = size;
    return expect("]");
  }

  Result<Argument> parse_default(const SchemaType& type) {
    skip_spaces();
    if (accept("None")) return Argument(None{});
    if (type.is_list) return parse_default_list(type);
    return parse_default_item(type.kind);
  }

  Result<Argument> parse_default_list(const SchemaType& type) {
    std::vector<Argument> items;
    if (accept("[")) {
      if (!accept("]")) {
        do {
          ARGOSY_TRY(Argument item, parse_default_item(type.kind));
          items.push_back(std::move(item));
        } while (accept(","));
        ARGOSY_TRY_STATUS(expect("]"));
      }
    } else {  // int[2] stride=1 stands for [1, 1]
      ARGOSY_TRY(Argument item, parse_default_item(type.kind));
      items.assign(static_cast<size_t>(std::max(type.list_size, 1)), item);
    }
    return to_list(type.kind, items);
  }

  Result<Argument> to_list(SchemaKind kind, const std::vector<Argument>& items) {
    switch (kind) {
      case SchemaKind::kInt:
      case SchemaKind::kSymInt: return collect<int64_t, IntList>(items);
      case SchemaKind::kFloat: return collect<double, DoubleList>(items);
      case SchemaKind::kBool: return collect<bool, BoolList>(items);
      case SchemaKind::kString: return collect<std::string, StringList>(items);
      case SchemaKind::kTensor:
        if (items.empty()) return Argument(ValueList{});
        break;
      default: break;
    }
    return Argument(ArgumentList{items});
  }

  template <class Item, class List>
  Result<Argument> collect(const std::vector<Argument>& items) {
    List list;
    for (const Argument& item : items) {
      const Item* value = item.get_if<Item>();
      if (value == nullptr) return error("default of a wrong type in a list");
      list.push_back(*value);
    }
    return Argument(std::move(list));
  }

  Result<Argument> parse_default_item(SchemaKind kind) {
    skip_spaces();
    if (position_ < text_.size() && (text_[position_] == '"' || text_[position_] == '\''))
      return parse_default_string();
    size_t start = position_;
    while (position_ < text_.size() && std::string_view(",)] ").find(text_[position_]) == std::string_view::npos)
      ++position_;
    std::string token(text_.substr(start, position_ - start));
    if (token == "True") return Argument(true);
    if (token == "False") return Argument(false);
    if (kind == SchemaKind::kMemoryFormat || token == "contiguous_format") {
      if (token == "contiguous_format" || token == "0") return Argument(MemoryFormat::kContiguous);
      if (token == "preserve_format" || token == "1") return Argument(MemoryFormat::kPreserve);
      if (token == "channels_last" || token == "2") return Argument(MemoryFormat::kChannelsLast);
    }
    if (token == "Mean") return Argument(int64_t{1});  // at::Reduction
    if (token == "strided") return Argument(TensorLayout::kStrided);
    if (token == "cpu") return Argument(Device{"cpu", std::nullopt});
    if (kind == SchemaKind::kDType) {
      if (token == "float" || token == "6") return Argument(DType::kF32);
      if (token == "long" || token == "4") return Argument(DType::kI64);
      return error(format("unknown default dtype '{}'", token));
    }
    return parse_default_number(kind, token);
  }

  Result<Argument> parse_default_number(SchemaKind kind, const std::string& token) {
    bool is_integer = !token.empty() && token.find_first_not_of("-0123456789") == std::string::npos;
    char* end = nullptr;
    if (is_integer && kind != SchemaKind::kFloat && kind != SchemaKind::kSymFloat) {
      errno = 0;
      int64_t value = std::strtoll(token.c_str(), &end, 10);
      if (errno == 0 && *end == '\0') return Argument(value);
      return error("default integer out of range");
    }
    double value = std::strtod(token.c_str(), &end);
    if (token.empty() || *end != '\0') return error(format("cannot read the default '{}'", token));
    return Argument(value);
  }

  Result<Argument> parse_default_string() {
    char quote = text_[position_++];
    std::string value;
    while (position_ < text_.size() && text_[position_] != quote) {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
      value += text_[position_++];
    }
    if (position_ >= text_.size()) return error("missing closing quote");
    ++position_;
    return Argument(std::move(value));
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

std::optional<uint32_t> OpSchema::find_argument(std::string_view argument) const {
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) return i;
  }
  return std::nullopt;
}

bool OpSchema::writes_any_argument() const {
  for (const SchemaArgument& argument : arguments) {
    if (argument.is_written) return true;
  }
  return false;
}

std::string op_name_of(std::string_view qualified_name) {
  size_t colons = qualified_name.find("::");
  if (colons == std::string_view::npos) return std::string(qualified_name);
  std::string_view op = qualified_name.substr(colons + 2);
  std::string name = format("{}.{}", qualified_name.substr(0, colons), op);
  if (op.find('.') == std::string_view::npos) name += ".default";
  return name;
}

Result<OpSchema> parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

SchemaTable::SchemaTable() {
  for (std::string_view text : builtin_schemas()) {
    Result<OpId> id = add(text);
    ARGOSY_CHECK(id.has_value(), format("builtin schema '{}' is wrong", text));
  }
}

Result<OpId> SchemaTable::add(OpSchema schema) {
  auto [entry, is_new] = by_name_.try_emplace(schema.name, OpId{static_cast<uint32_t>(schemas_.size())});
  if (!is_new) {
    const OpSchema& known = schemas_[entry->second.index];
    if (known.text != schema.text) {
      return fail(ErrorCode::kInvalidInput,
                  format("op {} has two schemas: {} and {}", schema.name, known.text, schema.text),
                  "use one version of torch for the whole program");
    }
    return entry->second;
  }
  schemas_.push_back(std::move(schema));
  return entry->second;
}

Result<OpId> SchemaTable::add(std::string_view text) {
  ARGOSY_TRY(OpSchema schema, parse_schema(text));
  return add(std::move(schema));
}

std::optional<OpId> SchemaTable::find(std::string_view op_name) const {
  auto found = by_name_.find(std::string(op_name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

}  // namespace argosy
