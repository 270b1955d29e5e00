#include <string>
#include <unordered_set>
#include <utility>

#include "backends/pt2/document.h"
#include "backends/pt2/type_writer.h"
#include "base/check.h"
#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

constexpr int kMaxGraphDepth = 64;
constexpr int kPositional = 1, kKeyword = 2;

/// Python's own functions: not found under torch.ops, arguments by position.
bool is_builtin(const OpSchema& schema) { return schema.text.find("::") == std::string::npos; }
bool is_higher_order(const OpSchema& schema) { return schema.name.starts_with("higher_order."); }

std::string target_of(const OpSchema& schema) {
  if (is_builtin(schema) && !is_higher_order(schema)) return schema.name;
  return "torch.ops." + schema.name;
}

/// Writes graphs of one component; sub-graphs inline.
class GraphWriter {
 public:
  GraphWriter(const Program& program, const Component& component, JsonWriter& json)
      : program_(program), component_(component), json_(json), types_(component) {}

  Status write_entry() { return write_graph(component_.entry(), 0); }

  /// {"as_tensor": {"name": …}} and the like, for a value of the graph.
  void write_value(const Graph& graph, ValueId id) {
    const Value& value = graph[id];
    json_.begin_object();
    if (const SymType* number = value.number()) {
      json_.key(number->kind == SymType::Kind::kInt     ? "as_sym_int"
                : number->kind == SymType::Kind::kFloat ? "as_sym_float"
                                                        : "as_sym_bool");
      json_.begin_object().key("as_name").value(value.name).end_object();
    } else {
      json_.key("as_tensor");
      write_name(graph, id);
    }
    json_.end_object();
  }

  /// What is neither a value of a graph nor a graph: the same everywhere.
  Status write_constant(const Argument& argument) {
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

 private:
  void write_name(const Graph& graph, ValueId id) {
    json_.begin_object().key("name").value(graph[id].name).end_object();
  }

  // ---- graphs ----

  Status write_graph(const Graph& graph, int depth) {
    if (depth > kMaxGraphDepth) return fail(ErrorCode::kInvalidInput, "sub-graphs nest too deeply, or call each other");
    bool is_condition = std::exchange(is_condition_, false);
    json_.begin_object().key("inputs").begin_array();
    if (depth == 0) {
      for (ValueId value : graph.weights()) write_value(graph, value);
      for (const InputSpec& input : component_.inputs) {
        if (input.value.is_valid()) {
          write_value(graph, input.value);
        } else {
          ARGOSY_TRY_STATUS(write_constant(input.constant));
        }
      }
    } else {
      ARGOSY_CHECK(graph.weights().empty(), "only the entry graph binds weights");
      for (ValueId value : graph.inputs()) write_value(graph, value);
    }
    json_.end_array().key("outputs").begin_array();
    for (const Argument& output : graph.outputs()) ARGOSY_TRY_STATUS(write_argument(graph, output, depth));
    json_.end_array().key("nodes").begin_array();
    std::unordered_set<std::string> names;
    for (ValueId value : graph.inputs()) names.insert(graph[value].name);
    for (ValueId value : graph.weights()) names.insert(graph[value].name);
    for (NodeId node : graph.nodes()) {
      for (ValueId value : graph[node].outputs) names.insert(graph[value].name);
    }
    for (NodeId node : graph.nodes()) {
      if (Status status = write_node(graph, node, names, depth); !status)
        return fail(at_node(std::move(status).error(), program_, graph, node));
    }
    json_.end_array();
    ARGOSY_TRY_STATUS(write_values(graph));
    // torch wants the condition of a loop as a bare value; everything else returns a tuple.
    json_.key("is_single_tensor_return").value(is_condition);
    json_.key("custom_obj_values").begin_object().end_object();
    json_.end_object();
    return {};
  }

  Status write_values(const Graph& graph) {
    std::vector<ValueId> values(graph.weights().begin(), graph.weights().end());
    values.insert(values.end(), graph.inputs().begin(), graph.inputs().end());
    for (NodeId node : graph.nodes())
      values.insert(values.end(), graph[node].outputs.begin(), graph[node].outputs.end());
    json_.key("tensor_values").begin_object();
    for (ValueId id : values) {
      const TensorType* type = graph[id].tensor();
      if (type == nullptr) continue;
      json_.key(graph[id].name);
      bool has_gradient = graph[id].weight.is_valid() && requires_grad(program_, component_, graph[id].weight);
      ARGOSY_TRY_STATUS(types_.tensor(json_, *type, has_gradient));
    }
    json_.end_object();
    struct Table {
      const char* key;
      SymType::Kind kind;
    };
    for (Table table : {Table{"sym_int_values", SymType::Kind::kInt}, Table{"sym_bool_values", SymType::Kind::kBool},
                        Table{"sym_float_values", SymType::Kind::kFloat}}) {
      json_.key(table.key).begin_object();
      for (ValueId id : values) {
        const SymType* type = graph[id].number();
        if (type == nullptr || type->kind != table.kind) continue;
        json_.key(graph[id].name);
        types_.number(json_, *type);
      }
      json_.end_object();
    }
    return {};
  }

  // ---- nodes ----

  Status write_node(const Graph& graph, NodeId id, std::unordered_set<std::string>& names, int depth) {
    const Node& node = graph[id];
    const OpSchema& schema = program_.schemas[node.op];
    json_.begin_object().key("target").value(target_of(schema)).key("inputs").begin_array();
    ARGOSY_TRY_STATUS(write_inputs(graph, node, schema, depth));
    json_.end_array().key("outputs").begin_array();
    write_outputs(graph, node, schema);
    json_.end_array();
    write_metadata(node.location);
    json_.key("is_hop_single_tensor_return");
    is_higher_order(schema) ? json_.value(false) : json_.null();
    json_.key("name").value(node_name(graph, node, schema, names));
    json_.end_object();
    return {};
  }

  /// torch calls a node like its only value; nodes of several, or none, need a name that no value has.
  std::string node_name(const Graph& graph, const Node& node, const OpSchema& schema,
                        std::unordered_set<std::string>& names) const {
    bool has_list = schema.returns.size() != 1 || schema.returns[0].type.is_list;
    if (node.outputs.size() == 1 && !has_list) return graph[node.outputs[0]].name;
    std::string_view base = schema.name;
    base = base.substr(base.find('.') + 1);
    std::string name(base.substr(0, base.find('.')));
    if (node.outputs.empty()) name += "_default";
    std::string candidate = name;
    for (size_t number = names.size(); !names.insert(candidate).second; ++number) {
      candidate = format("{}_{}", name, number);
    }
    return candidate;
  }

  Status write_inputs(const Graph& graph, const Node& node, const OpSchema& schema, int depth) {
    bool by_position = is_builtin(schema);
    // Trailing arguments that have their default are left out, as torch does.
    size_t last_positional = 0;
    auto is_default = [&](size_t i) {
      const std::optional<Argument>& value = schema.arguments[i].default_value;
      return value && *value == node.arguments[i];
    };
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      if (!schema.arguments[i].is_keyword_only && (by_position || !is_default(i))) last_positional = i + 1;
    }
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      bool is_extra = i >= schema.arguments.size();
      bool is_keyword = !is_extra && schema.arguments[i].is_keyword_only;
      if (!is_extra && (is_keyword ? is_default(i) : i >= last_positional)) continue;
      bool has_name = !is_extra && !is_higher_order(schema);
      json_.begin_object().key("name").value(has_name ? std::string_view(schema.arguments[i].name) : "").key("arg");
      is_condition_ = schema.name == "higher_order.while_loop" && i == 0;
      ARGOSY_TRY_STATUS(write_argument(graph, node.arguments[i], depth));
      is_condition_ = false;
      json_.key("kind").value(is_keyword ? kKeyword : kPositional).end_object();
    }
    return {};
  }

  void write_outputs(const Graph& graph, const Node& node, const OpSchema& schema) {
    // Lists that an op returns are one output with several names; a higher-order op's are separate ones.
    size_t next = 0;
    bool is_separate = is_higher_order(schema) || is_builtin(schema);
    if (!is_separate) {
      for (size_t i = 0; i < schema.returns.size(); ++i) {
        size_t after = schema.returns.size() - i - 1;
        if (!schema.returns[i].type.is_list) {
          if (next < node.outputs.size()) write_value(graph, node.outputs[next++]);
          continue;
        }
        json_.begin_object().key("as_tensors").begin_array();
        while (next + after < node.outputs.size()) write_name(graph, node.outputs[next++]);
        json_.end_array().end_object();
      }
    }
    while (next < node.outputs.size()) write_value(graph, node.outputs[next++]);
  }

  void write_metadata(LocationId id) {
    json_.key("metadata").begin_object();
    if (id.is_valid()) {
      const ModelLocation& location = program_.locations[id];
      if (!location.file.empty()) {
        // Readers cut paths behind the folder of packages, and take the base name of others.
        bool is_installed = location.file.find('/') != std::string::npos;
        json_.key("stack_trace")
            .value(format("File \"{}{}\", line {}, in forward", is_installed ? "site-packages/" : "", location.file,
                          location.line));
      }
      bool is_plain = location.module_path.find_first_of(",;@") == std::string::npos &&
                      location.class_name.find_first_of(",;@.") == std::string::npos;
      if (is_plain && !(location.module_path.empty() && location.class_name.empty())) {
        std::string call = location.call_index > 0 ? format("@{}", location.call_index) : std::string();
        json_.key("nn_module_stack")
            .value(
                format("L__self__{}{},{},{}", location.module_path, call, location.module_path, location.class_name));
      }
    }
    json_.end_object();
  }

  // ---- arguments ----

  Status write_argument(const Graph& graph, const Argument& argument, int depth) {
    if (const ValueId* value = argument.get_if<ValueId>()) {
      write_value(graph, *value);
      return {};
    }
    if (const GraphId* subgraph = argument.get_if<GraphId>()) {
      json_.begin_object().key("as_graph").begin_object();
      json_.key("name").value(format("subgraph_{}", subgraph->index)).key("graph");
      ARGOSY_TRY_STATUS(write_graph(component_.graphs[subgraph->index], depth + 1));
      json_.end_object().end_object();
      return {};
    }
    if (const IntList* list = argument.get_if<IntList>()) {
      write_int_list(graph, *list);
    } else if (const ValueList* values = argument.get_if<ValueList>()) {
      write_value_list(graph, *values);
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
      return write_mixed_list(graph, *mixed);
    } else {
      return write_constant(argument);
    }
    return {};
  }

  void write_int_list(const Graph& graph, const IntList& list) {
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

  void write_value_list(const Graph& graph, const ValueList& values) {
    bool has_none = false;
    for (ValueId value : values) has_none |= !value.is_valid();
    json_.begin_object().key(has_none ? "as_optional_tensors" : "as_tensors").begin_array();
    for (ValueId value : values) {
      if (!has_none) {
        write_name(graph, value);
        continue;
      }
      json_.begin_object();
      if (value.is_valid()) {
        json_.key("as_tensor");
        write_name(graph, value);
      } else {
        json_.key("as_none").value(true);
      }
      json_.end_object();
    }
    json_.end_array().end_object();
  }

  // Numbers of one kind, some of them symbolic; or lists of lists.
  Status write_mixed_list(const Graph& graph, const ArgumentList& list) {
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
    if (all([](const Argument& item) { return item.is<IntList>(); })) return write_nested(graph, list, "as_int_lists");
    if (all([](const Argument& item) { return item.is<DoubleList>(); }))
      return write_nested(graph, list, "as_float_lists");
    if (all([](const Argument& item) { return item.is<ValueList>(); }))
      return write_nested(graph, list, "as_nested_tensors");
    if (all([&](const Argument& item) { return item.is<int64_t>() || is_symbolic(item, SymType::Kind::kInt); })) {
      key = "as_sym_ints", constant_key = "as_int";
    } else if (all([&](const Argument& item) {
                 return item.is<double>() || is_symbolic(item, SymType::Kind::kFloat);
               })) {
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

  Status write_nested(const Graph& graph, const ArgumentList& list, const char* key) {
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
        for (ValueId value : *values) write_name(graph, value);
      }
      json_.end_array();
    }
    json_.end_array().end_object();
    return {};
  }

  const Program& program_;
  const Component& component_;
  JsonWriter& json_;
  Pt2TypeWriter types_;
  bool is_condition_ = false;  // the graph about to be written is the condition of a loop
};

// ---- signature and the rest of the file --------------------------------------------------------------------------

Status write_signature(const Program& program, const Component& component, GraphWriter& writer, JsonWriter& json) {
  const Graph& graph = component.entry();
  auto write_tensor_argument = [&](ValueId value) {
    json.key("arg").begin_object().key("name").value(graph[value].name).end_object();
  };
  json.begin_object().key("input_specs").begin_array();
  for (ValueId id : graph.weights()) {
    const Weight& weight = program[graph[id].weight];
    std::string_view name = weight_name_in(component, weight.name);
    json.begin_object();
    switch (weight.kind) {
      case WeightKind::kParameter:
        json.key("parameter").begin_object();
        write_tensor_argument(id);
        json.key("parameter_name").value(name);
        break;
      case WeightKind::kBuffer:
      case WeightKind::kNonPersistentBuffer:
        json.key("buffer").begin_object();
        write_tensor_argument(id);
        json.key("buffer_name").value(name).key("persistent").value(weight.kind == WeightKind::kBuffer);
        break;
      case WeightKind::kConstant:
        json.key("tensor_constant").begin_object();
        write_tensor_argument(id);
        json.key("tensor_constant_name").value(name);
        break;
    }
    json.end_object().end_object();
  }
  for (const InputSpec& input : component.inputs) {
    json.begin_object();
    if (input.value.is_valid()) {
      json.key("user_input").begin_object().key("arg");
      writer.write_value(graph, input.value);
    } else {
      json.key("constant_input").begin_object().key("name").value(input.name).key("value");
      ARGOSY_TRY_STATUS(writer.write_constant(input.constant));
    }
    json.end_object().end_object();
  }
  json.end_array().key("output_specs").begin_array();
  for (size_t i = 0; i < component.outputs.size(); ++i) {
    const OutputSpec& output = component.outputs[i];
    const Argument& argument = graph.outputs()[i];
    const ValueId* value = argument.get_if<ValueId>();
    json.begin_object();
    if (output.kind == OutputKind::kUser) {
      json.key("user_output").begin_object().key("arg");
      if (value != nullptr) {
        writer.write_value(graph, *value);
      } else {
        ARGOSY_TRY_STATUS(writer.write_constant(argument));
      }
      json.end_object().end_object();
      continue;
    }
    if (value == nullptr || graph[*value].tensor() == nullptr)
      return fail(ErrorCode::kInvalidInput, format("output {} of component {} must be a tensor", i, component.name));
    switch (output.kind) {
      case OutputKind::kLoss: json.key("loss_output"); break;
      case OutputKind::kBufferMutation: json.key("buffer_mutation"); break;
      case OutputKind::kParameterMutation: json.key("parameter_mutation"); break;
      default: json.key("user_input_mutation"); break;
    }
    json.begin_object();
    write_tensor_argument(*value);
    std::string_view target = weight_name_in(component, output.target);
    if (output.kind == OutputKind::kBufferMutation) json.key("buffer_name").value(target);
    if (output.kind == OutputKind::kParameterMutation) json.key("parameter_name").value(target);
    if (output.kind == OutputKind::kInputMutation) json.key("user_input_name").value(output.target);
    json.end_object().end_object();
  }
  json.end_array().end_object();
  return {};
}

const std::string* find_attribute(const Component& component, std::string_view name) {
  auto found = component.attributes.find(std::string(name));
  return found == component.attributes.end() ? nullptr : &found->second;
}

/// A kept JSON text, or `otherwise`.
Status write_kept(JsonWriter& json, const Component& component, std::string_view name, std::string_view otherwise) {
  const std::string* kept = find_attribute(component, name);
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse(kept != nullptr ? std::string_view(*kept) : otherwise, name));
  json.value(document.root());
  return {};
}

/// torch's text for a tuple of so many leaves.
std::string tuple_spec(size_t leaves) {
  constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";
  std::string children;
  for (size_t i = 0; i < leaves; ++i) children.append(i == 0 ? "" : ", ").append(kLeaf);
  return format(R"({{"type": "builtins.tuple", "context": "null", "children_spec": [{}]}})", children);
}

Status write_calls(JsonWriter& json, const Component& component) {
  size_t user_outputs = 0;
  for (const OutputSpec& output : component.outputs) user_outputs += output.kind == OutputKind::kUser;
  constexpr std::string_view kNoKeywords = R"({"type": "builtins.dict", "context": "[]", "children_spec": []})";
  std::string in_spec = format(R"([1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{}, {}]}}])",
                               tuple_spec(component.inputs.size()), kNoKeywords);
  std::string out_spec = format("[1, {}]", tuple_spec(user_outputs));
  const std::string* kept_in = find_attribute(component, kPt2InSpec);
  const std::string* kept_out = find_attribute(component, kPt2OutSpec);
  json.begin_array().begin_object().key("fqn").value("").key("signature").begin_object();
  json.key("inputs").begin_array().end_array().key("outputs").begin_array().end_array();
  json.key("in_spec").value(kept_in != nullptr ? *kept_in : in_spec);
  json.key("out_spec").value(kept_out != nullptr ? *kept_out : out_spec);
  json.key("forward_arg_names");
  ARGOSY_TRY_STATUS(write_kept(json, component, kPt2ArgumentNames, "null"));
  json.end_object().end_object().end_array();
  return {};
}

// What torch itself said of ranges goes back as it came: guards, which narrow them further here, go along too.
Status write_ranges(JsonWriter& json, const Component& component) {
  if (find_attribute(component, kPt2Ranges) != nullptr) return write_kept(json, component, kPt2Ranges, "");
  json.begin_object();
  for (SymExpr symbol : component.symbols->symbols()) {
    SymRange range = component.symbols->range(symbol);
    json.key(symbol.symbol_name()).begin_object().key("min_val");
    range.min == SymRange::kNoMin ? json.null() : json.value(range.min);
    json.key("max_val");
    range.max == SymRange::kNoMax ? json.null() : json.value(range.max);
    json.end_object();
  }
  json.end_object();
  return {};
}

}  // namespace

Result<std::string> write_graph_json(const Program& program, const Component& component) {
  JsonWriter json;
  GraphWriter writer(program, component, json);
  json.begin_object().key("graph_module").begin_object().key("graph");
  ARGOSY_TRY_STATUS(writer.write_entry());
  json.key("signature");
  ARGOSY_TRY_STATUS(write_signature(program, component, writer, json));
  json.key("module_call_graph");
  ARGOSY_TRY_STATUS(write_calls(json, component));
  json.key("metadata");
  ARGOSY_TRY_STATUS(write_kept(json, component, kPt2Metadata, "{}"));
  json.key("treespec_namedtuple_fields");
  ARGOSY_TRY_STATUS(write_kept(json, component, kPt2NamedTuples, "{}"));
  json.end_object().key("opset_version");
  ARGOSY_TRY_STATUS(write_kept(json, component, kPt2OpsetVersion, R"({"aten": 10})"));
  json.key("range_constraints");
  ARGOSY_TRY_STATUS(write_ranges(json, component));
  json.key("schema_version").begin_object().key("major").value(kPt2SchemaMajor);
  json.key("minor").value(kPt2SchemaMinor).end_object().key("verifiers");
  ARGOSY_TRY_STATUS(write_kept(json, component, kPt2Verifiers, R"(["TRAINING"])"));
  const std::string* torch_version = find_attribute(component, kPt2TorchVersion);
  json.key("torch_version").value(torch_version != nullptr ? *torch_version : "2.13.0");
  json.key("guards_code").begin_array();
  for (const Guard& guard : component.guards) json.value(guard.text);
  json.end_array().end_object();
  return json.take();
}

}  // namespace argosy
