#include "backends/pt2/argument_writer.h"

#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {

void ArgumentWriter::value(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  json_.begin_object();
  if (const SymType* number = value.number()) {
    json_.key(number->kind == SymType::Kind::kInt     ? "as_sym_int"
              : number->kind == SymType::Kind::kFloat ? "as_sym_float"
                                                      : "as_sym_bool");
    json_.begin_object().key("as_name").value(value.name).end_object();
  } else {
    json_.key("as_tensor");
    name(graph, id);
  }
  json_.end_object();
}

Status ArgumentWriter::constant(const Argument& argument) {
  json_.begin_object();
  if (argument.is<None>()) json_.key("as_none").value(true);
  if (const bool* flag = argument.get_if<bool>()) json_.key("as_bool").value(*flag);
  if (const int64_t* number = argument.get_if<int64_t>()) json_.key("as_int").value(*number);
  if (const double* number = argument.get_if<double>()) json_.key("as_float").value(*number);
  if (const std::string* text = argument.get_if<std::string>()) json_.key("as_string").value(*text);
  if (const auto* number = argument.get_if<std::complex<double>>()) {
    json_.key("as_complex").begin_object().key("real").value(number->real()).key("imag").value(number->imag());
    json_.end_object();
  }
  if (const DType* dtype = argument.get_if<DType>()) {
    std::optional<int64_t> number = pt2_number(*dtype);
    if (!number)
      return fail(ErrorCode::kUnsupportedFeature, format("torch's graphs have no dtype {}", to_text(*dtype)));
    json_.key("as_scalar_type").value(*number);
  }
  if (const Device* device = argument.get_if<Device>()) {
    json_.key("as_device").begin_object().key("type").value(device->type).key("index");
    device->index ? json_.value(*device->index) : json_.null();
    json_.end_object();
  }
  if (const TensorLayout* layout = argument.get_if<TensorLayout>())
    json_.key("as_layout").value(*layout == TensorLayout::kStrided ? 7 : static_cast<int>(*layout));
  if (const MemoryFormat* memory_format = argument.get_if<MemoryFormat>())
    json_.key("as_memory_format").value(static_cast<int>(*memory_format) + 1);
  json_.end_object();
  return {};
}

void ArgumentWriter::name(const Graph& graph, ValueId id) {
  json_.begin_object().key("name").value(graph[id].name).end_object();
}

Status ArgumentWriter::list_or_constant(const Graph& graph, const Argument& argument) {
  if (const IntList* list = argument.get_if<IntList>()) {
    int_list(graph, *list);
  } else if (const ValueList* values = argument.get_if<ValueList>()) {
    value_list(graph, *values);
  } else if (const BoolList* flags = argument.get_if<BoolList>()) {
    json_.begin_object().key("as_bools").begin_array();
    for (bool flag : *flags) json_.value(flag);
    json_.end_array().end_object();
  } else if (const DoubleList* numbers = argument.get_if<DoubleList>()) {
    json_.begin_object().key("as_floats").begin_array();
    for (double number : *numbers) json_.value(number);
    json_.end_array().end_object();
  } else if (const StringList* texts = argument.get_if<StringList>()) {
    json_.begin_object().key("as_strings").begin_array();
    for (const std::string& text : *texts) json_.value(text);
    json_.end_array().end_object();
  } else if (const ArgumentList* mixed = argument.get_if<ArgumentList>()) {
    return mixed_list(graph, *mixed);
  } else {
    return constant(argument);
  }
  return {};
}

void ArgumentWriter::int_list(const Graph& graph, const IntList& list) {
  bool is_symbolic = false;
  for (const IntItem& item : list) is_symbolic |= std::holds_alternative<ValueId>(item);
  json_.begin_object().key(is_symbolic ? "as_sym_ints" : "as_ints").begin_array();
  for (const IntItem& item : list) {
    const int64_t* number = std::get_if<int64_t>(&item);
    if (!is_symbolic) {
      json_.value(*number);
    } else if (number != nullptr) {
      json_.begin_object().key("as_int").value(*number).end_object();
    } else {
      json_.begin_object().key("as_name").value(graph[std::get<ValueId>(item)].name).end_object();
    }
  }
  json_.end_array().end_object();
}

void ArgumentWriter::value_list(const Graph& graph, const ValueList& values) {
  bool has_none = false;
  for (ValueId value : values) has_none |= !value.is_valid();
  json_.begin_object().key(has_none ? "as_optional_tensors" : "as_tensors").begin_array();
  for (ValueId value : values) {
    if (!has_none) {
      name(graph, value);
      continue;
    }
    json_.begin_object();
    if (value.is_valid()) {
      json_.key("as_tensor");
      name(graph, value);
    } else {
      json_.key("as_none").value(true);
    }
    json_.end_object();
  }
  json_.end_array().end_object();
}

// Numbers of one kind, some of them symbolic; or lists of lists.
Status ArgumentWriter::mixed_list(const Graph& graph, const ArgumentList& list) {
  auto all = [&](auto fits) {
    for (const Argument& item : list.items) {
      if (!fits(item)) return false;
    }
    return true;
  };
  auto is_symbolic = [&](const Argument& item, SymType::Kind kind) {
    const ValueId* value = item.get_if<ValueId>();
    const SymType* number = value == nullptr ? nullptr : graph[*value].number();
    return number != nullptr && number->kind == kind;
  };
  const char* key = nullptr;
  const char* constant_key = nullptr;
  if (all([](const Argument& item) { return item.is<IntList>(); })) return nested_list(graph, list, "as_int_lists");
  if (all([](const Argument& item) { return item.is<DoubleList>(); }))
    return nested_list(graph, list, "as_float_lists");
  if (all([](const Argument& item) { return item.is<ValueList>(); }))
    return nested_list(graph, list, "as_nested_tensors");
  if (all([&](const Argument& item) { return item.is<int64_t>() || is_symbolic(item, SymType::Kind::kInt); })) {
    key = "as_sym_ints", constant_key = "as_int";
  } else if (all([&](const Argument& item) { return item.is<double>() || is_symbolic(item, SymType::Kind::kFloat); })) {
    key = "as_sym_floats", constant_key = "as_float";
  } else if (all([&](const Argument& item) { return item.is<bool>() || is_symbolic(item, SymType::Kind::kBool); })) {
    key = "as_sym_bools", constant_key = "as_bool";
  } else {
    return fail(ErrorCode::kUnsupportedFeature, "torch's graphs have no list of such mixed items");
  }
  json_.begin_object().key(key).begin_array();
  for (const Argument& item : list.items) {
    json_.begin_object();
    if (const ValueId* value = item.get_if<ValueId>()) {
      json_.key("as_name").value(graph[*value].name);
    } else {
      json_.key(constant_key);
      if (const int64_t* integer = item.get_if<int64_t>()) json_.value(*integer);
      if (const double* number = item.get_if<double>()) json_.value(*number);
      if (const bool* flag = item.get_if<bool>()) json_.value(*flag);
    }
    json_.end_object();
  }
  json_.end_array().end_object();
  return {};
}

Status ArgumentWriter::nested_list(const Graph& graph, const ArgumentList& list, const char* key) {
  json_.begin_object().key(key).begin_array();
  for (const Argument& item : list.items) {
    json_.begin_array();
    if (const IntList* numbers = item.get_if<IntList>()) {
      for (const IntItem& number : *numbers) {
        if (std::holds_alternative<ValueId>(number))
          return fail(ErrorCode::kUnsupportedFeature, "torch's graphs have no nested lists of symbolic sizes");
        json_.value(std::get<int64_t>(number));
      }
    }
    if (const DoubleList* numbers = item.get_if<DoubleList>()) {
      for (double number : *numbers) json_.value(number);
    }
    if (const ValueList* values = item.get_if<ValueList>()) {
      for (ValueId value : *values) name(graph, value);
    }
    json_.end_array();
  }
  json_.end_array().end_object();
  return {};
}

}  // namespace argosy
