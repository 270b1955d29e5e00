#include "frontends/pt2/graph_json.h"

#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "frontends/pt2/component_reader.h"
#include "frontends/pt2/guards.h"
#include "frontends/pt2/json_field.h"
#include "frontends/pt2/signature.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

using Ranges = std::map<std::string, SymRange, std::less<>>;

Status check_version(const JsonField& root) {
  JsonField version = root.member("schema_version");
  ARGOSY_TRY(int64_t major, version.member("major").integer());
  ARGOSY_TRY(int64_t minor, version.member("minor").integer());
  if (major == kPt2SchemaMajor) return {};
  std::string_view torch = root.view().find("torch_version").as_string().value_or("unknown");
  return fail(
      ErrorCode::kUnsupportedVersion,
      format("graph schema {}.{} (written by torch {}) is not read, only {}.x", major, minor, torch, kPt2SchemaMajor),
      format("export the model again with a torch whose schema is {}.x, such as 2.13", kPt2SchemaMajor));
}

bool is_symbol_name(std::string_view name) {
  if (name.empty()) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return !std::isdigit(static_cast<unsigned char>(name.front()));
}

// Bounds of products of unbacked sizes may exceed 64 bits; that is no bound then.
Status read_bound(const JsonField& bound, int64_t& value) {
  if (!bound.is_valid() || bound.view().is_null()) return {};
  ARGOSY_TRY(double rough, bound.number());
  if (std::abs(rough) > 0x1p62) return {};
  ARGOSY_TRY(value, bound.integer());
  return {};
}

Result<Ranges> read_ranges(const JsonField& root) {
  JsonField constraints = root.member("range_constraints");
  ARGOSY_TRY_STATUS(constraints.require_object());
  Ranges ranges;
  for (auto [name, value] : constraints.view().members()) {
    JsonField field = constraints.child(name, value);
    if (!is_symbol_name(name)) continue;  // a bound of an expression of symbols
    SymRange range;
    JsonField min = field.member("min_val");
    JsonField max = field.member("max_val");
    ARGOSY_TRY_STATUS(read_bound(min, range.min));
    ARGOSY_TRY_STATUS(read_bound(max, range.max));
    if (range.min > range.max) return field.error(format("empty range {} to {}", range.min, range.max));
    if (!ranges.emplace(name, range).second) return field.error("given twice");
  }
  return ranges;
}

void keep(Component& component, std::string_view attribute, JsonView value) {
  if (!value.is_valid() || value.is_null()) return;
  if ((value.is_array() || value.is_object()) && value.size() == 0) return;
  JsonWriter writer;
  component.attributes.emplace(attribute, writer.value(value).take());
}

// As torch wrote them, but for bounds beyond 64 bits, which bound nothing.
void keep_ranges(Component& component, JsonView constraints) {
  JsonWriter writer;
  writer.begin_object();
  for (auto [name, range] : constraints.members()) {
    writer.key(name).begin_object();
    for (std::string_view bound : {"min_val", "max_val"}) {
      std::optional<int64_t> value = range.find(bound).as_integer();
      writer.key(bound);
      value ? writer.value(*value) : writer.null();
    }
    writer.end_object();
  }
  component.attributes.emplace(kPt2Ranges, writer.end_object().take());
}

void keep_text(Component& component, std::string_view attribute, JsonView value) {
  if (std::optional<std::string_view> text = value.as_string()) component.attributes.emplace(attribute, *text);
}

// Texts that torch needs to load the graph again.
Status keep_attributes(const JsonField& root, const JsonField& module, Component& component) {
  JsonField calls = module.member("module_call_graph");
  ARGOSY_TRY_STATUS(calls.require_array());
  for (JsonView entry : calls.view().items()) {
    JsonView signature = entry.find("signature");
    keep_text(component, kPt2InSpec, signature.find("in_spec"));
    keep_text(component, kPt2OutSpec, signature.find("out_spec"));
    keep(component, kPt2ArgumentNames, signature.find("forward_arg_names"));
    break;  // the first entry is the whole model
  }
  keep(component, kPt2Verifiers, root.view().find("verifiers"));
  keep(component, kPt2OpsetVersion, root.view().find("opset_version"));
  keep_ranges(component, root.view().find("range_constraints"));
  keep_text(component, kPt2TorchVersion, root.view().find("torch_version"));
  keep(component, kPt2NamedTuples, module.view().find("treespec_namedtuple_fields"));
  keep(component, kPt2Metadata, module.view().find("metadata"));
  return {};
}

void keep_hints(Component& component, const TypeReader& types) {
  std::string text;
  for (const auto& [symbol, value] : types.hints()) text += format("{}{}={}", text.empty() ? "" : " ", symbol, value);
  if (!text.empty()) component.attributes.emplace(kPt2Hints, std::move(text));
  if (types.float_hints().empty()) return;
  JsonWriter writer;
  writer.begin_object();
  for (const auto& [srepr, value] : types.float_hints()) writer.key(srepr).value(value);
  component.attributes.emplace(kPt2FloatHints, writer.end_object().take());
}

// Graphs live on one device; lowering does not care which, torch does when it loads the graph again.
void keep_device(Component& component, const JsonField& graph) {
  for (auto [name, meta] : graph.view().find("tensor_values").members()) {
    std::optional<std::string_view> device = meta.find("device").find("type").as_string();
    if (device && *device != "cpu") component.attributes.emplace(kPt2Device, *device);
    return;
  }
}

void keep_frozen(Component& component, const JsonField& graph, const std::vector<InputRole>& roles) {
  JsonView values = graph.view().find("tensor_values");
  std::map<std::string_view, std::string_view> parameters;
  for (const InputRole& role : roles) {
    if (role.kind == InputRole::Kind::kWeight && role.weight_kind == WeightKind::kParameter)
      parameters.emplace(role.argument, role.name);
  }
  std::string text;
  size_t count = 0;
  for (auto [name, meta] : values.members()) {
    auto found = parameters.find(name);
    if (found == parameters.end() || meta.find("requires_grad").as_bool() != false) continue;
    text.append(found->second).append("\n");
    ++count;
  }
  if (count == 0) return;
  component.attributes.emplace(kPt2Frozen, count == parameters.size() ? "*" : std::move(text));
}

Status check_outputs(const JsonField& signature, const Component& component, const Program& program) {
  const Graph& graph = component.entry();
  JsonField specs = signature.member("output_specs");
  if (component.outputs.size() != graph.outputs().size()) {
    return specs.error(
        format("the graph has {} outputs, its signature {}", graph.outputs().size(), component.outputs.size()));
  }
  std::set<std::string_view> weights, inputs;
  for (ValueId value : graph.weights()) weights.insert(program[graph[value].weight].name);
  for (const InputSpec& input : component.inputs) inputs.insert(input.name);
  for (size_t i = 0; i < component.outputs.size(); ++i) {
    const OutputSpec& output = component.outputs[i];
    if (output.kind == OutputKind::kUser || output.kind == OutputKind::kLoss) continue;
    const auto& names = output.kind == OutputKind::kInputMutation ? inputs : weights;
    if (!names.contains(output.target))
      return specs.error(format("output {} mutates {}, which the graph does not have", i, quoted(output.target)));
    const ValueId* value = graph.outputs()[i].get_if<ValueId>();
    if (value == nullptr || graph[*value].tensor() == nullptr)
      return specs.error(format("output {} mutates {} with what is no tensor", i, quoted(output.target)));
  }
  return {};
}

}  // namespace

Result<Component> read_graph_json(JsonView root_view, std::string_view name, Program& program,
                                  const GraphJsonOptions& options) {
  JsonField root(root_view, "");
  ARGOSY_TRY_STATUS(root.require_object());
  ARGOSY_TRY_STATUS(check_version(root));
  JsonField module = root.member("graph_module");
  ARGOSY_TRY_STATUS(module.require_object());
  JsonField graph = module.member("graph");
  ARGOSY_TRY_STATUS(graph.require_object());
  JsonField signature = module.member("signature");

  Component component;
  component.name = name;
  component.symbols = std::make_shared<SymContext>();
  ARGOSY_TRY(Ranges ranges, read_ranges(root));
  ARGOSY_TRY(SignatureJson roles, read_signature(signature));
  ComponentReader reader(program, component, options, ranges);
  ARGOSY_TRY_STATUS(reader.resolve_ops(graph));
  ARGOSY_TRY_STATUS(reader.read_entry(graph, roles.inputs));
  component.outputs = std::move(roles.outputs);
  ARGOSY_TRY_STATUS(check_outputs(signature, component, program));
  ARGOSY_TRY_STATUS(keep_attributes(root, module, component));
  keep_hints(component, reader.types());
  keep_frozen(component, graph, roles.inputs);
  keep_device(component, graph);

  JsonField guards = root.member("guards_code");
  std::vector<std::string_view> texts;
  int64_t index = 0;
  for (JsonView item : guards.view().items()) {
    JsonField field = guards.item(item, index++);
    ARGOSY_TRY(std::string_view text, field.string());
    texts.push_back(text);
  }
  add_guards(component, texts);
  return component;
}

}  // namespace argosy
