#include "base/text.h"
#include "ir/parse_reader.h"

namespace argosy {

Result<Argument> TextReader::read_argument(const Graph* graph, const SchemaType& type, int depth) {
  switch (token().kind) {
    case TokenKind::kNumber: return read_number();
    case TokenKind::kValueName: return read_value(graph).map([](ValueId id) { return Argument(id); });
    case TokenKind::kString: return read_string().map([](std::string text) { return Argument(std::move(text)); });
    case TokenKind::kWord: return read_named(graph, type, depth);
    default: break;
  }
  if (token().is('[')) return read_list(implied_list(type), graph, type, depth);
  return unexpected("an argument");
}

Result<Argument> TextReader::read_number() {
  // Whatever looks like an integer is one; doubles have a '.', an exponent, or are inf or nan.
  if (token().text.find_first_not_of("-0123456789") == std::string_view::npos) {
    ARGOSY_TRY(int64_t value, read_integer());
    return Argument(value);
  }
  ARGOSY_TRY(double value, read_double());
  return Argument(value);
}

Result<Argument> TextReader::read_named(const Graph* graph, const SchemaType& type, int depth) {
  Token name = token();
  if (name.is("inf") || name.is("nan")) return read_double().map([](double value) { return Argument(value); });
  lexer_.advance();
  if (name.is("none")) return Argument(None{});
  if (name.is("true")) return Argument(true);
  if (name.is("false")) return Argument(false);
  if (name.is("complex")) return read_complex();
  if (auto kind = list_kind_from(name.text)) return read_list(*kind, graph, type, depth);
  if (name.is("device")) return read_device();
  if (name.is("graph")) {
    ARGOSY_TRY_STATUS(expect(':'));
    ARGOSY_TRY(uint32_t index, read_index());
    graph_references_.push_back({GraphId{index}, name});
    return Argument(GraphId{index});
  }
  bool is_known = name.is("dtype") || name.is("layout") || name.is("format");
  if (!is_known) {
    return error_at(name, format("expected an argument, found {}", name.describe()),
                    "strings need quotes, values start with '%'");
  }
  ARGOSY_TRY_STATUS(expect(':'));
  Token choice = token();
  ARGOSY_TRY(std::string text, read_word(name.text));
  if (name.is("dtype")) {
    if (auto dtype = dtype_from_text(text)) return Argument(*dtype);
  } else if (name.is("layout")) {
    if (auto layout = layout_from(text)) return Argument(*layout);
  } else if (auto kind = memory_format_from(text)) {
    return Argument(*kind);
  }
  return error_at(choice, format("unknown {} {}", name.text, quoted(text)));
}

Result<Argument> TextReader::read_device() {
  ARGOSY_TRY_STATUS(expect(':'));
  Device device;
  ARGOSY_TRY(device.type, read_word("a device"));
  if (accept(':')) {
    ARGOSY_TRY(device.index, read_integer());
  }
  return Argument(std::move(device));
}

Result<Argument> TextReader::read_complex() {
  ARGOSY_TRY_STATUS(expect('('));
  ARGOSY_TRY(double real, read_double());
  ARGOSY_TRY_STATUS(expect(','));
  ARGOSY_TRY(double imaginary, read_double());
  ARGOSY_TRY_STATUS(expect(')'));
  return Argument(std::complex<double>(real, imaginary));
}

Result<ValueId> TextReader::read_value(const Graph* graph) {
  Token name = token();
  ARGOSY_TRY(std::string text, read_name(TokenKind::kValueName, "a value"));
  if (graph == nullptr) return error_at(name, "a value cannot be used here");
  std::optional<ValueId> id = graph->find(text);
  if (!id) {
    return error_at(name, format("value {} is not defined", name.describe()),
                    "values are defined before they are used, in the same graph");
  }
  return *id;
}

Result<IntItem> TextReader::read_int_item(const Graph* graph) {
  if (token().kind == TokenKind::kValueName) {
    ARGOSY_TRY(ValueId id, read_value(graph));
    return IntItem(id);
  }
  ARGOSY_TRY(int64_t value, read_integer());
  return IntItem(value);
}

Result<Argument> TextReader::read_list(ListKind kind, const Graph* graph, const SchemaType& type, int depth) {
  Token open = token();
  ARGOSY_TRY_STATUS(expect('['));
  if (depth >= kMaxListDepth) {
    return error_at(open, format("lists are nested deeper than {}", kMaxListDepth));
  }
  auto read_items = [&](auto list, const auto& read_item) -> Result<Argument> {
    if (!accept(']')) {
      do {
        ARGOSY_TRY(auto item, read_item());
        list.push_back(std::move(item));
      } while (accept(','));
      ARGOSY_TRY_STATUS(expect(']'));
    }
    return Argument(std::move(list));
  };
  switch (kind) {
    case ListKind::kInts: return read_items(IntList(), [&] { return read_int_item(graph); });
    case ListKind::kDoubles: return read_items(DoubleList(), [&] { return read_double(); });
    case ListKind::kStrings: return read_items(StringList(), [&] { return read_string(); });
    case ListKind::kBools:
      return read_items(BoolList(), [&]() -> Result<bool> {
        if (accept("true")) return true;
        if (accept("false")) return false;
        return unexpected("true or false");
      });
    case ListKind::kValues:
      return read_items(ValueList(), [&]() -> Result<ValueId> {
        if (accept("none")) return ValueId();
        return read_value(graph);
      });
    case ListKind::kNested: break;
  }
  ArgumentList list;
  SchemaType item = item_type(type);
  if (accept(']')) return Argument(std::move(list));
  do {
    ARGOSY_TRY(Argument entry, read_argument(graph, item, depth + 1));
    list.items.push_back(std::move(entry));
  } while (accept(','));
  ARGOSY_TRY_STATUS(expect(']'));
  return Argument(std::move(list));
}

}  // namespace argosy
