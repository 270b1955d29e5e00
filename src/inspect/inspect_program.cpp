#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/checked_math.h"
#include "base/text.h"
#include "inspect/inspect.h"

namespace argosy {
namespace {

/// An expression with the users' names of its symbols.
std::string dim_text(const Component& component, SymExpr expression) {
  if (!expression.is_valid()) return "?";
  if (auto value = expression.as_integer()) return std::to_string(*value);
  std::string text = component.symbols->to_text(expression);
  if (component.dim_names.empty()) return text;
  std::string renamed;
  for (size_t i = 0; i < text.size();) {
    auto is_word = [&](size_t at) { return std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'; };
    size_t end = i;
    while (end < text.size() && is_word(end)) ++end;
    if (end == i) {
      renamed += text[i++];
      continue;
    }
    std::string word = text.substr(i, end - i);
    auto name = component.dim_names.find(word);
    renamed += name == component.dim_names.end() ? word : name->second;
    i = end;
  }
  return renamed;
}

TypeText type_text(const Component& component, const ValueType& type) {
  TypeText text;
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    text.dtype = to_text(tensor->dtype);
    for (SymExpr dim : tensor->shape) text.dims.push_back(dim_text(component, dim));
    return text;
  }
  const SymType& number = std::get<SymType>(type);
  text.is_tensor = false;
  text.dtype = number.kind == SymType::Kind::kInt ? "int" : number.kind == SymType::Kind::kFloat ? "float" : "bool";
  return text;
}

std::string constant_text(const Argument& argument) {
  if (const auto* flag = argument.get_if<bool>()) return *flag ? "true" : "false";
  if (const auto* number = argument.get_if<int64_t>()) return std::to_string(*number);
  if (const auto* number = argument.get_if<double>()) return format_double(*number);
  if (const auto* text = argument.get_if<std::string>()) return argosy::quoted(*text);
  if (argument.is<None>()) return "none";
  return "a constant";
}

void collect_interface(const Component& component, ComponentReport& report) {
  const Graph& graph = component.entry();
  for (const InputSpec& input : component.inputs) {
    InterfaceEntry entry{input.name, std::nullopt, ""};
    if (input.value.is_valid()) {
      entry.type = type_text(component, graph[input.value].type);
    } else {
      entry.constant = constant_text(input.constant);
    }
    report.inputs.push_back(std::move(entry));
  }
  for (size_t i = 0; i < component.outputs.size() && i < graph.outputs().size(); ++i) {
    const OutputSpec& output = component.outputs[i];
    if (output.kind != OutputKind::kUser && output.kind != OutputKind::kLoss) continue;
    const Argument& result = graph.outputs()[i];
    const auto* value = result.get_if<ValueId>();
    InterfaceEntry entry{output.name, std::nullopt, ""};
    if (value != nullptr && value->is_valid()) {
      entry.type = type_text(component, graph[*value].type);
      if (entry.name.empty()) entry.name = graph[*value].name;
    } else {
      entry.constant = constant_text(result);
    }
    report.outputs.push_back(std::move(entry));
  }
}

void add_symbols(SymExpr expression, std::unordered_map<std::string_view, SymExpr>& seen, std::vector<SymExpr>& found) {
  if (!expression.is_valid()) return;
  if (expression.kind() == SymKind::kSymbol) {
    if (seen.emplace(expression.symbol_name(), expression).second) found.push_back(expression);
    return;
  }
  for (SymExpr operand : expression.operands()) add_symbols(operand, seen, found);
}

/// The symbols of the inputs, in the order in which they appear there.
void collect_dims(const Component& component, ComponentReport& report) {
  std::unordered_map<std::string_view, SymExpr> seen;
  std::vector<SymExpr> symbols;
  for (const InputSpec& input : component.inputs) {
    if (!input.value.is_valid()) continue;
    const Value& value = component.entry()[input.value];
    if (const TensorType* tensor = value.tensor()) {
      for (SymExpr dim : tensor->shape) add_symbols(dim, seen, symbols);
    } else if (value.number() != nullptr) {
      add_symbols(value.number()->expression, seen, symbols);
    }
  }
  for (SymExpr symbol : symbols) {
    std::string name(symbol.symbol_name());
    auto named = component.dim_names.find(name);
    report.dims.push_back(
        {named == component.dim_names.end() ? name : named->second, name, component.symbols->range(symbol)});
  }
}

/// State by name, so that what is both returned and written in place is one entry.
class Mutations {
 public:
  MutationEntry& entry(std::string kind, const std::string& target) {
    auto [found, is_new] = by_target_.emplace(kind + '\0' + target, list_.size());
    if (is_new) list_.push_back({std::move(kind), target, std::nullopt, 0});
    return list_[found->second];
  }
  std::vector<MutationEntry> take() { return std::move(list_); }

 private:
  std::vector<MutationEntry> list_;
  std::unordered_map<std::string, size_t> by_target_;
};

/// Inputs and weights of the entry graph whose memory nodes write. Sub-graphs of higher-order ops do not write what is
/// outside of them.
void collect_writes(const Program& program, const Component& component, Mutations& mutations) {
  const Graph& graph = component.entry();
  struct State {
    std::string kind, target;
  };
  std::unordered_map<ValueId, State> by_value;
  std::unordered_map<StorageId, ValueId> by_storage;
  auto add = [&](ValueId value, State state) {
    if (!by_value.emplace(value, std::move(state)).second) return;
    if (graph[value].storage.is_valid()) by_storage.emplace(graph[value].storage, value);
  };
  for (const InputSpec& input : component.inputs) {
    if (input.value.is_valid()) add(input.value, {"input", input.name});
  }
  for (ValueId value : graph.weights()) {
    const Weight& weight = program[graph[value].weight];
    add(value, {weight.kind == WeightKind::kParameter ? "parameter" : "buffer", weight.name});
  }
  for (NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    const OpSchema& schema = program.schemas[node.op];
    if (!schema.writes_any_argument()) continue;
    for (size_t i = 0; i < schema.arguments.size() && i < node.arguments.size(); ++i) {
      if (!schema.arguments[i].is_written) continue;
      for_each_value(node.arguments[i], [&](ValueId value, uint32_t) {
        auto same = by_storage.find(graph[value].storage);
        auto state = by_value.find(same == by_storage.end() ? value : same->second);
        if (state != by_value.end()) mutations.entry(state->second.kind, state->second.target).writes += 1;
      });
    }
  }
}

void collect_mutations(const Program& program, const Component& component, ComponentReport& report) {
  Mutations mutations;
  for (size_t i = 0; i < component.outputs.size(); ++i) {
    const OutputSpec& output = component.outputs[i];
    const char* kind = output.kind == OutputKind::kBufferMutation      ? "buffer"
                       : output.kind == OutputKind::kParameterMutation ? "parameter"
                       : output.kind == OutputKind::kInputMutation     ? "input"
                                                                       : nullptr;
    if (kind != nullptr) mutations.entry(kind, output.target).output = static_cast<uint32_t>(i);
  }
  collect_writes(program, component, mutations);
  report.mutations = mutations.take();
}

std::vector<OpCount> sorted_ops(const SchemaTable& schemas, const std::vector<uint64_t>& counts) {
  std::vector<OpCount> ops;
  for (uint32_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) ops.push_back({schemas[OpId{i}].name, counts[i]});
  }
  std::sort(ops.begin(), ops.end(),
            [](const OpCount& a, const OpCount& b) { return a.count != b.count ? a.count > b.count : a.op < b.op; });
  return ops;
}

void collect_weights(const Program& program, ProgramReport& report) {
  DTypeTotals totals;
  uint64_t without_bytes = 0;
  for (const Weight& weight : program.weights) {
    int64_t elements = element_count(weight.shape).value_or(0);
    TensorEntry entry{weight.name, weight.kind, weight.dtype, weight.shape, 0, "", true};
    entry.bytes = static_cast<uint64_t>(packed_bytes(weight.dtype, elements).value_or(0));
    entry.is_stored = !weight.source->recipe().starts_with("shape_only(");
    if (weight.tied_to.is_valid()) {
      entry.tied_to = program[weight.tied_to].name;
    } else {
      totals.add(weight.dtype, static_cast<uint64_t>(elements), entry.bytes);
      without_bytes += entry.is_stored ? 0 : 1;
    }
    report.tensors.push_back(std::move(entry));
  }
  report.totals = totals.list();
  std::sort(report.tensors.begin(), report.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  if (without_bytes > 0) {
    report.warnings.push_back(format("{} weights are shapes only: their values are not in this file", without_bytes));
  }
}

}  // namespace

std::string_view to_text(WeightKind kind) {
  switch (kind) {
    case WeightKind::kParameter: return "parameter";
    case WeightKind::kBuffer: return "buffer";
    case WeightKind::kNonPersistentBuffer: return "non-persistent buffer";
    case WeightKind::kConstant: return "constant";
  }
  return "";
}

ProgramReport inspect_program(const Program& program) {
  ProgramReport report;
  std::vector<uint64_t> all_counts(program.schemas.size(), 0);
  for (const Component& component : program.components) {
    ComponentReport entry;
    entry.name = component.name;
    entry.sub_graphs = component.graphs.size() - 1;
    std::vector<uint64_t> counts(program.schemas.size(), 0);
    for (const Graph& graph : component.graphs) {
      entry.nodes += graph.node_count();
      for (NodeId node : graph.nodes()) counts[graph[node].op.index] += 1;
    }
    for (size_t i = 0; i < counts.size(); ++i) all_counts[i] += counts[i];
    entry.ops = sorted_ops(program.schemas, counts);
    collect_interface(component, entry);
    collect_dims(component, entry);
    collect_mutations(program, component, entry);
    entry.specialized = component.specialized;
    for (const Guard& guard : component.guards) {
      entry.guards.push_back(guard.text);
      entry.guards_not_understood += guard.condition.is_valid() ? 0 : 1;
    }
    if (entry.guards_not_understood > 0) {
      report.warnings.push_back(format("component {}: {} of {} guards are not understood, and only kept as text",
                                       component.name, entry.guards_not_understood, entry.guards.size()));
    }
    report.components.push_back(std::move(entry));
  }
  report.ops = sorted_ops(program.schemas, all_counts);
  collect_weights(program, report);
  return report;
}

}  // namespace argosy
