#include <string>

#include "backends/pt2/argument_writer.h"
#include "backends/pt2/document.h"
#include "backends/pt2/graph_writer.h"
#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

Status write_signature(const Program& program, const Component& component, JsonWriter& json) {
  const Graph& graph = component.entry();
  ArgumentWriter arguments(json);
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
      arguments.value(graph, input.value);
    } else {
      json.key("constant_input").begin_object().key("name").value(input.name).key("value");
      ARGOSY_TRY_STATUS(arguments.constant(input.constant));
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
        arguments.value(graph, *value);
      } else {
        ARGOSY_TRY_STATUS(arguments.constant(argument));
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

// torch's own ranges are written back unchanged: guards, which narrow them further here, are written too.
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
  json.begin_object().key("graph_module").begin_object().key("graph");
  ARGOSY_TRY_STATUS(write_entry_graph(program, component, json));
  json.key("signature");
  ARGOSY_TRY_STATUS(write_signature(program, component, json));
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