#include "base/text.h"
#include "ir/text_syntax.h"
#include "ir/verify_parts.h"

namespace argosy {
namespace {

std::string_view name_of(SchemaKind kind) {
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
    case SchemaKind::kGenerator: return "Generator";
    case SchemaKind::kStream: return "Stream";
    case SchemaKind::kStorage: return "Storage";
    case SchemaKind::kQScheme: return "QScheme";
    case SchemaKind::kDimname: return "Dimname";
    case SchemaKind::kGraph: return "Graph";
    case SchemaKind::kAny: return "Any";
    case SchemaKind::kOther: return "a type that graphs do not have";
  }
  return "?";
}

/// Whether values of a number kind may stand where the schema says so. A symbolic int may stand for a float, as in
/// torch.
bool fits_number(SymType::Kind number, SchemaKind kind) {
  switch (kind) {
    case SchemaKind::kScalar:
    case SchemaKind::kAny: return true;
    case SchemaKind::kInt:
    case SchemaKind::kSymInt: return number == SymType::Kind::kInt;
    case SchemaKind::kFloat:
    case SchemaKind::kSymFloat: return number != SymType::Kind::kBool;
    case SchemaKind::kBool:
    case SchemaKind::kSymBool: return number == SymType::Kind::kBool;
    default: return false;
  }
}

bool fits_value(const Value& value, SchemaKind kind) {
  if (kind == SchemaKind::kAny) return true;
  if (value.tensor() != nullptr) return kind == SchemaKind::kTensor;
  return fits_number(value.number()->kind, kind);
}

bool fits_int_list(const Graph& graph, const IntList& list) {
  for (const IntItem& item : list) {
    const ValueId* id = std::get_if<ValueId>(&item);
    if (id != nullptr && !fits_value(graph[*id], SchemaKind::kSymInt)) return false;
  }
  return true;
}

bool fits(const Graph& graph, size_t graph_count, const Argument& argument, const SchemaType& type);

bool fits_list(const Graph& graph, size_t graph_count, const Argument& argument, const SchemaType& type) {
  if (const auto* nested = argument.get_if<ArgumentList>()) {
    // Where a list has an alternative of its own, that one is used.
    bool has_own = type.list_depth == 1 && implied_list(type) != ListKind::kInts && !type.has_optional_items;
    bool is_int = type.kind == SchemaKind::kInt || type.kind == SchemaKind::kSymInt;
    if (has_own || (is_int && type.list_depth == 1 && !type.has_optional_items)) return false;
    SchemaType item = item_type(type);
    for (const Argument& entry : nested->items) {
      if (type.kind != SchemaKind::kAny && !fits(graph, graph_count, entry, item)) return false;
    }
    return true;
  }
  if (type.list_depth > 1) return false;
  switch (type.kind) {
    case SchemaKind::kTensor:
      if (const auto* list = argument.get_if<ValueList>()) {
        for (ValueId id : *list) {
          if (!id.is_valid() ? !type.has_optional_items : graph[id].tensor() == nullptr) return false;
        }
        return true;
      }
      return false;
    case SchemaKind::kInt:
    case SchemaKind::kSymInt: return argument.is<IntList>() && fits_int_list(graph, *argument.get_if<IntList>());
    case SchemaKind::kFloat:
    case SchemaKind::kSymFloat: return argument.is<DoubleList>();
    case SchemaKind::kBool:
    case SchemaKind::kSymBool: return argument.is<BoolList>();
    case SchemaKind::kString: return argument.is<StringList>();
    case SchemaKind::kScalar:
      return argument.is<DoubleList>() || argument.is<BoolList>() ||
             (argument.is<IntList>() && fits_int_list(graph, *argument.get_if<IntList>()));
    case SchemaKind::kAny:
      return argument.is<IntList>() || argument.is<DoubleList>() || argument.is<BoolList>() ||
             argument.is<StringList>() || argument.is<ValueList>();
    default: return false;
  }
}

bool fits(const Graph& graph, size_t graph_count, const Argument& argument, const SchemaType& type) {
  if (type.is_optional && argument.is<None>()) return true;
  if (type.is_list) return fits_list(graph, graph_count, argument, type);
  if (const auto* id = argument.get_if<ValueId>()) return fits_value(graph[*id], type.kind);
  switch (type.kind) {
    case SchemaKind::kAny: return true;
    case SchemaKind::kScalar:
      return argument.is<bool>() || argument.is<int64_t>() || argument.is<double>() ||
             argument.is<std::complex<double>>();
    case SchemaKind::kInt:
    case SchemaKind::kSymInt: return argument.is<int64_t>();
    case SchemaKind::kFloat:
    case SchemaKind::kSymFloat: return argument.is<double>();
    case SchemaKind::kBool:
    case SchemaKind::kSymBool: return argument.is<bool>();
    case SchemaKind::kString: return argument.is<std::string>();
    case SchemaKind::kDType: return argument.is<DType>();
    case SchemaKind::kDevice: return argument.is<Device>();
    case SchemaKind::kLayout: return argument.is<TensorLayout>();
    case SchemaKind::kMemoryFormat: return argument.is<MemoryFormat>();
    case SchemaKind::kGraph: return argument.is<GraphId>() && argument.get_if<GraphId>()->index < graph_count;
    default: return false;
  }
}

std::string_view name_of(const Value& value) {
  if (value.tensor() != nullptr) return "tensor";
  switch (value.number()->kind) {
    case SymType::Kind::kInt: return "int";
    case SymType::Kind::kFloat: return "float";
    case SymType::Kind::kBool: return "bool";
  }
  return "?";
}

// Short, but so that one sees what is wrong: long lists are cut.
std::string shown(const Graph& graph, const Argument& argument) {
  std::string text;
  append_argument(text, &graph, argument, {.kind = SchemaKind::kAny});
  constexpr size_t kMaxShown = 200;
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "…";
  if (const auto* id = argument.get_if<ValueId>()) text += format(", a value of kind {}", name_of(graph[*id]));
  return text;
}

/// Which return of the schema describes output `index` of `count`: a list return stands for as many as are left over.
const SchemaReturn& return_of(const OpSchema& schema, size_t list_at, size_t index, size_t count) {
  if (index < list_at) return schema.returns[index];
  size_t behind = count - index;  // outputs from here to the end
  size_t returns_behind = schema.returns.size() - list_at - 1;
  if (behind <= returns_behind) return schema.returns[schema.returns.size() - behind];
  return schema.returns[list_at];
}

void check_results(const Graph& graph, NodeId id, const OpSchema& schema, Findings& findings) {
  const Node& node = graph[id];
  size_t lists = 0;
  size_t list_at = schema.returns.size();
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (!schema.returns[i].type.is_list) continue;
    ++lists;
    if (list_at == schema.returns.size()) list_at = i;
  }
  size_t expected = schema.returns.size() - lists;
  if (lists == 0 ? node.outputs.size() != expected : node.outputs.size() < expected) {
    findings.add_at(graph, id,
                    format("op {} has {}{} results, but the node has {}", schema.name, lists > 0 ? "at least " : "",
                           expected, node.outputs.size()),
                    "its schema is " + schema.text);
    return;
  }
  if (lists > 1) return;  // where one list ends and the next begins is not known
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const SchemaReturn& expected_return =
        lists == 0 ? schema.returns[i] : return_of(schema, list_at, i, node.outputs.size());
    SchemaType type = expected_return.type;
    if (type.is_list) type = item_type(type);
    if (auto problem = result_mismatch(graph[node.outputs[i]], type)) {
      findings.add_at(graph, id, format("result {} of {}: {}", i, schema.name, *problem),
                      "its schema is " + schema.text);
    }
  }
}

}  // namespace

std::string to_text(const SchemaType& type) {
  std::string text(name_of(type.kind));
  if (type.is_list) {
    if (type.has_optional_items) text += '?';
    for (int i = 1; i < type.list_depth; ++i) text += "[]";
    text += type.list_size < 0 ? "[]" : format("[{}]", type.list_size);
  }
  if (type.is_optional) text += '?';
  return text;
}

std::optional<std::string> mismatch(const Graph& graph, size_t graph_count, const Argument& argument,
                                    const SchemaType& type) {
  if (fits(graph, graph_count, argument, type)) return std::nullopt;
  return format("expected {}, found {}", to_text(type), shown(graph, argument));
}

std::optional<std::string> result_mismatch(const Value& value, const SchemaType& type) {
  if (fits_value(value, type.kind)) return std::nullopt;
  return format("expected {}, found %{} of kind {}", to_text(type), value.name, name_of(value));
}

void verify_nodes(const Program& program, const Component& component, const Graph& graph, Findings& findings) {
  for (NodeId id : graph.nodes()) {
    if (findings.is_full()) return;
    const Node& node = graph[id];
    const OpSchema& schema = program.schemas[node.op];
    size_t named = schema.arguments.size();
    bool is_right_count = schema.is_variadic ? node.arguments.size() >= named : node.arguments.size() == named;
    if (!is_right_count) {
      findings.add_at(graph, id,
                      format("op {} has {}{} arguments, but the node has {}", schema.name,
                             schema.is_variadic ? "at least " : "", named, node.arguments.size()),
                      "its schema is " + schema.text);
      continue;
    }
    size_t before = findings.count();
    for (size_t i = 0; i < named; ++i) {
      if (auto problem = mismatch(graph, component.graphs.size(), node.arguments[i], schema.arguments[i].type)) {
        findings.add_at(graph, id, format("argument {} of {}: {}", schema.arguments[i].name, schema.name, *problem),
                        "its schema is " + schema.text);
      }
    }
    check_results(graph, id, schema, findings);
    if (findings.count() == before) verify_calls(program, component, graph, id, findings);
  }
}

}  // namespace argosy
