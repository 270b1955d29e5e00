#include "frontends/pt2/arguments.h"

#include <limits>

#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

constexpr int64_t kMaxListLength = 1 << 20;

std::string_view kind_text(SchemaKind kind) {
  switch (kind) {
    case SchemaKind::kTensor: return "Tensor";
    case SchemaKind::kScalar: return "Scalar";
    case SchemaKind::kInt: return "int";
    case SchemaKind::kSymInt: return "SymInt";
    case SchemaKind::kFloat: return "float";
    case SchemaKind::kSymFloat: return "SymFloat";
    case SchemaKind::kBool: return "bool";
    case SchemaKind::kSymBool: return "SymBool";
    case SchemaKind::kString: return "str";
    case SchemaKind::kDType: return "ScalarType";
    case SchemaKind::kDevice: return "Device";
    case SchemaKind::kLayout: return "Layout";
    case SchemaKind::kMemoryFormat: return "MemoryFormat";
    case SchemaKind::kGraph: return "Graph";
    case SchemaKind::kAny: return "Any";
    default: return "a type that no graph can hold";
  }
}

std::string type_text(const SchemaType& type) {
  std::string text(kind_text(type.kind));
  if (type.is_list) text += type.has_optional_items ? "?[]" : "[]";
  if (type.is_optional) text += '?';
  return text;
}

tl::unexpected<Error> does_not_fit(const JsonField& argument, std::string_view tag, const SchemaType& type) {
  return argument.error(format("{} does not fit the schema's type {}", quoted(tag), type_text(type)));
}

bool is_number_tag(std::string_view tag) {
  return tag == "as_int" || tag == "as_float" || tag == "as_bool" || tag == "as_complex" || tag == "as_sym_int" ||
         tag == "as_sym_float" || tag == "as_sym_bool";
}

Result<Argument> read_complex(const JsonField& inner) {
  ARGOSY_TRY(double real, inner.member("real").number());
  ARGOSY_TRY(double imaginary, inner.member("imag").number());
  return Argument(std::complex<double>(real, imaginary));
}

Result<Argument> read_device(const JsonField& inner) {
  ARGOSY_TRY(std::string_view type, inner.member("type").string());
  Device device{.type = std::string(type), .index = std::nullopt};
  JsonField index = inner.member("index");
  if (index.is_valid() && !index.view().is_null()) {
    ARGOSY_TRY(device.index, index.integer());
  }
  return Argument(std::move(device));
}

Result<Argument> read_dtype_number(const JsonField& inner) {
  ARGOSY_TRY(int64_t number, inner.integer());
  std::optional<DType> dtype = dtype_from_pt2(number);
  if (!dtype) return inner.error(ErrorCode::kUnsupportedFeature, format("unknown dtype number {}", number));
  return Argument(*dtype);
}

Result<Argument> read_layout(const JsonField& inner) {
  ARGOSY_TRY(int64_t number, inner.integer());
  if (number < 1 || number > 7) return inner.error(format("unknown layout number {}", number));
  // The JSON has strided last (7), we first; the others are numbered alike.
  return Argument(number == 7 ? TensorLayout::kStrided : static_cast<TensorLayout>(number));
}

Result<Argument> read_memory_format(const JsonField& inner) {
  ARGOSY_TRY(int64_t number, inner.integer());
  if (number < 1 || number > 4) return inner.error(format("unknown memory format number {}", number));
  return Argument(static_cast<MemoryFormat>(number - 1));
}

template <class List, class Read>
Result<Argument> read_plain_list(const JsonField& list, Read read) {
  List result;
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    ARGOSY_TRY(auto value, read(field));
    result.push_back(typename List::value_type(value));
  }
  return Argument(std::move(result));
}

}  // namespace

Result<ValueId> ValueScope::find(const JsonField& field, std::string_view name) const {
  auto found = by_name.find(name);
  if (found == by_name.end()) {
    return field.error(format("value {} is not defined here: no input or earlier node has that name", quoted(name)));
  }
  return found->second;
}

bool ArgumentReader::is_number(const JsonField& argument) {
  return argument.view().is_object() && is_number_tag(argument.view().only_member().first);
}

Result<ValueId> ArgumentReader::read_tensor_name(const JsonField& tensor) const {
  JsonField field = tensor.member("name");
  ARGOSY_TRY(std::string_view name, field.string());
  return scope_.find(field, name);
}

// {"as_name": "sym_size"} or {"as_int": 3}: a symbolic number may turn out to be a constant.
Result<Argument> ArgumentReader::read_symbolic(const JsonField& symbolic, std::string_view constant_tag) const {
  ARGOSY_TRY(auto tag, symbolic.tag());
  JsonField inner = symbolic.child(tag.first, tag.second);
  if (tag.first == "as_name") {
    ARGOSY_TRY(std::string_view name, inner.string());
    ARGOSY_TRY(ValueId value, scope_.find(inner, name));
    if (scope_.graph[value].number() == nullptr)
      return inner.error(format("value {} is a tensor, not a number", quoted(name)));
    return Argument(value);
  }
  if (tag.first != constant_tag) return symbolic.error(format("unknown kind of number {}", quoted(tag.first)));
  if (tag.first == "as_int") {
    ARGOSY_TRY(int64_t number, inner.integer());
    return Argument(number);
  }
  if (tag.first == "as_float") {
    ARGOSY_TRY(double number, inner.number());
    return Argument(number);
  }
  ARGOSY_TRY(bool flag, inner.boolean());
  return Argument(flag);
}

Result<Argument> ArgumentReader::read(const JsonField& argument, const SchemaType& type) const {
  ARGOSY_TRY(auto tag, argument.tag());
  JsonField inner = argument.child(tag.first, tag.second);
  if (tag.first == "as_none") return Argument(None{});
  if (tag.second.is_array() && tag.second.size() > kMaxListLength) {
    return argument.error(format("a list of more than {} items", kMaxListLength));
  }
  if (type.is_list) return read_list(argument, tag.first, inner, type);
  return read_item(argument, tag.first, inner, type);
}

Result<Argument> ArgumentReader::read_item(const JsonField& argument, std::string_view tag, const JsonField& inner,
                                           const SchemaType& type) const {
  Argument value;
  ARGOSY_TRY(value, read_untyped(argument));
  auto as_double = [&]() -> Result<Argument> {
    if (const int64_t* number = value.get_if<int64_t>()) return Argument(static_cast<double>(*number));
    if (const bool* flag = value.get_if<bool>()) return Argument(*flag ? 1.0 : 0.0);
    return value;
  };
  bool fits = false;
  switch (type.kind) {
    case SchemaKind::kTensor:
      fits = tag == "as_tensor" || tag == "as_optional_tensor";
      if (fits && value.is<ValueId>() && scope_.graph[*value.get_if<ValueId>()].tensor() == nullptr)
        return inner.error("names a number where the schema wants a tensor");
      break;
    case SchemaKind::kScalar: fits = is_number_tag(tag); break;
    case SchemaKind::kInt:
    case SchemaKind::kSymInt:
      if (const bool* flag = value.get_if<bool>()) value = static_cast<int64_t>(*flag);  // Python's bool is an int
      fits = tag == "as_int" || tag == "as_bool" || tag == "as_sym_int";
      break;
    case SchemaKind::kFloat:
    case SchemaKind::kSymFloat:
      fits = is_number_tag(tag) && tag != "as_complex";
      if (fits) return as_double();
      break;
    case SchemaKind::kBool:
    case SchemaKind::kSymBool:
      if (const int64_t* number = value.get_if<int64_t>(); number != nullptr && (*number == 0 || *number == 1)) {
        return Argument(*number == 1);
      }
      fits = tag == "as_bool" || tag == "as_sym_bool";
      break;
    case SchemaKind::kString: fits = tag == "as_string"; break;
    case SchemaKind::kDType: fits = tag == "as_scalar_type"; break;
    case SchemaKind::kDevice: fits = tag == "as_device"; break;
    case SchemaKind::kLayout: fits = tag == "as_layout"; break;
    case SchemaKind::kMemoryFormat: fits = tag == "as_memory_format"; break;
    case SchemaKind::kGraph: fits = tag == "as_graph"; break;
    case SchemaKind::kAny: fits = true; break;
    default: break;
  }
  if (!fits) return does_not_fit(argument, tag, type);
  return value;
}

Result<Argument> ArgumentReader::read_list(const JsonField& argument, std::string_view tag, const JsonField& inner,
                                           const SchemaType& type) const {
  if (!tag.starts_with("as_") || !inner.view().is_array()) {
    // One int stands for a list of as many as the schema names: int[2] stride=1.
    bool is_int_kind = type.kind == SchemaKind::kInt || type.kind == SchemaKind::kSymInt;
    if (is_int_kind && type.list_size > 0 && (tag == "as_int" || tag == "as_sym_int")) {
      ARGOSY_TRY(Argument value, read_untyped(argument));
      IntItem item;
      if (const int64_t* number = value.get_if<int64_t>()) item = *number;
      if (const ValueId* id = value.get_if<ValueId>()) item = *id;
      return Argument(IntList(static_cast<size_t>(type.list_size), item));
    }
    bool is_float_kind = type.kind == SchemaKind::kFloat || type.kind == SchemaKind::kSymFloat;
    if (is_float_kind && type.list_size > 0 && (tag == "as_float" || tag == "as_int")) {
      ARGOSY_TRY(double value, inner.number());
      return Argument(DoubleList(static_cast<size_t>(type.list_size), value));
    }
    return does_not_fit(argument, tag, type);
  }
  bool is_empty = inner.view().size() == 0;  // an empty list carries the tag of any list
  if (type.list_depth > 1) return read_untyped(argument);
  switch (type.kind) {
    case SchemaKind::kTensor:
      if (is_empty) return Argument(ValueList{});
      if (tag != "as_tensors" && tag != "as_optional_tensors") break;
      return read_value_list(inner, tag);
    case SchemaKind::kInt:
    case SchemaKind::kSymInt:
      if (is_empty) return Argument(IntList{});
      if (tag != "as_ints" && tag != "as_sym_ints") break;
      return read_int_list(inner, tag);
    case SchemaKind::kFloat:
    case SchemaKind::kSymFloat:
      if (is_empty) return Argument(DoubleList{});
      if (tag == "as_sym_floats") return read_mixed_list(inner, tag);
      if (tag != "as_floats" && tag != "as_ints") break;
      return read_plain_list<DoubleList>(inner, [](const JsonField& item) { return item.number(); });
    case SchemaKind::kBool:
    case SchemaKind::kSymBool:
      if (is_empty) return Argument(BoolList{});
      if (tag == "as_sym_bools") return read_mixed_list(inner, tag);
      if (tag != "as_bools") break;
      return read_plain_list<BoolList>(inner, [](const JsonField& item) { return item.boolean(); });
    case SchemaKind::kString:
      if (is_empty) return Argument(StringList{});
      if (tag != "as_strings") break;
      return read_plain_list<StringList>(inner, [](const JsonField& item) { return item.string(); });
    case SchemaKind::kScalar:
      if (is_empty || tag == "as_ints" || tag == "as_floats" || tag == "as_bools" || tag == "as_sym_ints" ||
          tag == "as_sym_floats" || tag == "as_sym_bools")
        return read_mixed_list(inner, tag);
      break;
    case SchemaKind::kAny:
      if (is_empty) return Argument(ValueList{});
      return read_untyped(argument);
    default: break;
  }
  return does_not_fit(argument, tag, type);
}

Result<Argument> ArgumentReader::read_int_list(const JsonField& list, std::string_view tag) const {
  IntList result;
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    if (tag == "as_ints") {
      ARGOSY_TRY(int64_t number, field.integer());
      result.emplace_back(number);
      continue;
    }
    ARGOSY_TRY(Argument value, read_symbolic(field, "as_int"));
    if (const ValueId* id = value.get_if<ValueId>()) {
      result.emplace_back(*id);
    } else {
      result.emplace_back(*value.get_if<int64_t>());
    }
  }
  return Argument(std::move(result));
}

Result<Argument> ArgumentReader::read_value_list(const JsonField& list, std::string_view tag) const {
  ValueList result;
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    if (tag == "as_tensors") {
      ARGOSY_TRY(ValueId value, read_tensor_name(field));
      result.push_back(value);
      continue;
    }
    ARGOSY_TRY(auto inner_tag, field.tag());
    JsonField inner = field.child(inner_tag.first, inner_tag.second);
    if (inner_tag.first == "as_none") {
      result.emplace_back();
    } else if (inner_tag.first == "as_tensor") {
      ARGOSY_TRY(ValueId value, read_tensor_name(inner));
      result.push_back(value);
    } else {
      return field.error(format("unknown kind of optional tensor {}", quoted(inner_tag.first)));
    }
  }
  return Argument(std::move(result));
}

Result<Argument> ArgumentReader::read_mixed_list(const JsonField& list, std::string_view tag) const {
  ArgumentList result;
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    if (tag == "as_ints") {
      ARGOSY_TRY(int64_t number, field.integer());
      result.items.emplace_back(number);
    } else if (tag == "as_floats") {
      ARGOSY_TRY(double number, field.number());
      result.items.emplace_back(number);
    } else if (tag == "as_bools") {
      ARGOSY_TRY(bool flag, field.boolean());
      result.items.emplace_back(flag);
    } else {
      std::string_view constant = tag == "as_sym_ints" ? "as_int" : tag == "as_sym_floats" ? "as_float" : "as_bool";
      ARGOSY_TRY(Argument value, read_symbolic(field, constant));
      result.items.push_back(std::move(value));
    }
  }
  return Argument(std::move(result));
}

Result<Argument> ArgumentReader::read_saturated(const JsonField& argument) const {
  auto [tag, value] = argument.view().only_member();
  std::optional<double> number = tag == "as_int" ? value.as_double() : std::nullopt;
  if (number && !value.as_integer()) {
    if (*number >= 0x1p63) return Argument(std::numeric_limits<int64_t>::max());
    if (*number <= -0x1p63) return Argument(std::numeric_limits<int64_t>::min());
  }
  return read_untyped(argument);
}

Result<Argument> ArgumentReader::read_untyped(const JsonField& argument) const {
  ARGOSY_TRY(auto found, argument.tag());
  std::string_view tag = found.first;
  JsonField inner = argument.child(tag, found.second);
  if (tag == "as_none") return Argument(None{});
  if (tag == "as_tensor") {
    ARGOSY_TRY(ValueId value, read_tensor_name(inner));
    return Argument(value);
  }
  if (tag == "as_optional_tensor") {
    ARGOSY_TRY(auto optional, inner.tag());
    if (optional.first == "as_none") return Argument(None{});
    JsonField tensor = inner.child(optional.first, optional.second);
    if (optional.first != "as_tensor") return inner.error(format("unknown kind {}", quoted(optional.first)));
    ARGOSY_TRY(ValueId value, read_tensor_name(tensor));
    return Argument(value);
  }
  if (tag == "as_int") {
    ARGOSY_TRY(int64_t number, inner.integer());
    return Argument(number);
  }
  if (tag == "as_float") {
    ARGOSY_TRY(double number, inner.number());
    return Argument(number);
  }
  if (tag == "as_bool") {
    ARGOSY_TRY(bool flag, inner.boolean());
    return Argument(flag);
  }
  if (tag == "as_string") {
    ARGOSY_TRY(std::string_view text, inner.string());
    return Argument(std::string(text));
  }
  if (tag == "as_sym_int") return read_symbolic(inner, "as_int");
  if (tag == "as_sym_float") return read_symbolic(inner, "as_float");
  if (tag == "as_sym_bool") return read_symbolic(inner, "as_bool");
  if (tag == "as_complex") return read_complex(inner);
  if (tag == "as_scalar_type") return read_dtype_number(inner);
  if (tag == "as_layout") return read_layout(inner);
  if (tag == "as_memory_format") return read_memory_format(inner);
  if (tag == "as_device") return read_device(inner);
  if (tag == "as_graph") {
    ARGOSY_TRY(GraphId graph, read_subgraph_(inner));
    return Argument(graph);
  }
  if (tag == "as_custom_obj" || tag == "as_operator" || tag == "as_string_to_argument") {
    return argument.error(ErrorCode::kUnsupportedFeature, format("arguments of kind {} are not supported", quoted(tag)),
                          "objects, operators and dictionaries as arguments have no counterpart in exported files");
  }
  if (!inner.view().is_array()) return argument.error(format("unknown kind of argument {}", quoted(tag)));
  if (tag == "as_ints" || tag == "as_sym_ints") return read_int_list(inner, tag);
  if (tag == "as_tensors" || tag == "as_optional_tensors") return read_value_list(inner, tag);
  if (tag == "as_floats")
    return read_plain_list<DoubleList>(inner, [](const JsonField& item) { return item.number(); });
  if (tag == "as_bools") return read_plain_list<BoolList>(inner, [](const JsonField& item) { return item.boolean(); });
  if (tag == "as_strings")
    return read_plain_list<StringList>(inner, [](const JsonField& item) { return item.string(); });
  if (tag == "as_sym_floats" || tag == "as_sym_bools") return read_mixed_list(inner, tag);
  bool is_int_lists = tag == "as_int_lists", is_float_lists = tag == "as_float_lists";
  if (!is_int_lists && !is_float_lists && tag != "as_nested_tensors")
    return argument.error(format("unknown kind of argument {}", quoted(tag)));
  ArgumentList lists;
  int64_t index = 0;
  for (JsonView item : inner.view().items()) {
    JsonField list = inner.item(item, index++);
    ARGOSY_TRY_STATUS(list.require_array());
    Result<Argument> read =
        is_int_lists     ? read_int_list(list, "as_ints")
        : is_float_lists ? read_plain_list<DoubleList>(list, [](const JsonField& number) { return number.number(); })
                         : read_value_list(list, "as_tensors");
    if (!read) return read;
    lists.items.push_back(*std::move(read));
  }
  return Argument(std::move(lists));
}

}  // namespace argosy
