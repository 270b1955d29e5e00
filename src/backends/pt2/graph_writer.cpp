#include "backends/pt2/graph_writer.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "backends/pt2/argument_writer.h"
#include "backends/pt2/document.h"
#include "backends/pt2/type_writer.h"
#include "base/check.h"
#include "base/text.h"

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
      : program_(program), component_(component), json_(json), arguments_(json), types_(component) {}

  Status write_entry() { return write_graph(component_.entry(), 0); }

 private:
  // ---- graphs ----

  Status write_graph(const Graph& graph, int depth) {
    if (depth > kMaxGraphDepth) return fail(ErrorCode::kInvalidInput, "sub-graphs nest too deeply, or call each other");
    bool is_condition = std::exchange(is_condition_, false);
    json_.begin_object().key("inputs").begin_array();
    if (depth == 0) {
      for (ValueId value : graph.weights()) arguments_.value(graph, value);
      for (const InputSpec& input : component_.inputs) {
        if (input.value.is_valid()) {
          arguments_.value(graph, input.value);
        } else {
          ARGOSY_TRY_STATUS(arguments_.constant(input.constant));
        }
      }
    } else {
      ARGOSY_CHECK(graph.weights().empty(), "only the entry graph binds weights");
      for (ValueId value : graph.inputs()) arguments_.value(graph, value);
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
          if (next < node.outputs.size()) arguments_.value(graph, node.outputs[next++]);
          continue;
        }
        json_.begin_object().key("as_tensors").begin_array();
        while (next + after < node.outputs.size()) arguments_.name(graph, node.outputs[next++]);
        json_.end_array().end_object();
      }
    }
    while (next < node.outputs.size()) arguments_.value(graph, node.outputs[next++]);
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
      arguments_.value(graph, *value);
      return {};
    }
    if (const GraphId* subgraph = argument.get_if<GraphId>()) {
      json_.begin_object().key("as_graph").begin_object();
      json_.key("name").value(format("subgraph_{}", subgraph->index)).key("graph");
      ARGOSY_TRY_STATUS(write_graph(component_.graphs[subgraph->index], depth + 1));
      json_.end_object().end_object();
      return {};
    }
    return arguments_.list_or_constant(graph, argument);
  }

  const Program& program_;
  const Component& component_;
  JsonWriter& json_;
  ArgumentWriter arguments_;
  Pt2TypeWriter types_;
  bool is_condition_ = false;  // the graph about to be written is the condition of a loop
};

}  // namespace

Status write_entry_graph(const Program& program, const Component& component, JsonWriter& json) {
  return GraphWriter(program, component, json).write_entry();
}

}  // namespace argosy
