#include "border/border.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "passes/substitute_symbols.h"

namespace argosy {
namespace {

template <class Specs>
[[noreturn]] void no_such(std::string_view kind, std::string_view name, const Specs& specs) {
  std::vector<std::string> names;
  for (const auto& spec : specs) names.push_back(spec.name);
  Border::refuse(format("the graph has no {} {}", kind, quoted(name)), format("it has {}", join(names, ", ")));
}

}  // namespace

const InputSpec* find_input(const Component& component, std::string_view name) {
  auto found = std::ranges::find(component.inputs, name, &InputSpec::name);
  return found == component.inputs.end() ? nullptr : &*found;
}

Status keep_outputs(Component& component, const std::vector<std::string>& names) {
  std::vector<OutputSpec> specs;
  std::vector<Argument> outputs;
  const Graph& graph = component.entry();
  for (const std::string& name : names) {
    auto found = std::ranges::find(component.outputs, name, &OutputSpec::name);
    if (found == component.outputs.end())
      return fail(ErrorCode::kUnsupportedFeature, format("component {} has no output {}", component.name, name));
    specs.push_back(*found);
    outputs.push_back(graph.outputs()[static_cast<size_t>(found - component.outputs.begin())]);
  }
  for (size_t i = 0; i < component.outputs.size(); ++i) {
    if (component.outputs[i].kind == OutputKind::kUser) continue;
    specs.push_back(component.outputs[i]);
    outputs.push_back(graph.outputs()[i]);
  }
  Rewriter(component.graphs.front()).set_outputs(std::move(outputs));
  component.outputs = std::move(specs);
  return {};
}

SymExpr new_symbol(Component& component, const std::string& name, SymAssumptions assumptions) {
  std::string symbol = name;
  auto is_taken = [&] {
    return std::ranges::any_of(component.symbols->symbols(),
                               [&](SymExpr each) { return each.symbol_name() == symbol; });
  };
  for (int i = 1; is_taken(); ++i) symbol = format("{}_{}", name, i);
  return component.symbols->symbol(symbol, assumptions);
}

void forget_trace(Component& component) {
  component.guards.clear();
  component.samples.clear();
  component.specialized.clear();
  std::erase_if(component.attributes, [](const auto& attribute) { return attribute.first.starts_with("pt2."); });
}

Border::Border(Program& the_program, Component& the_component)
    : program(the_program),
      component(the_component),
      rewriter(the_component.graphs.front()),
      context_{the_program, the_component, rewriter, NodeId{}},
      f_(context_),
      old_nodes_(graph().node_limit()) {}

void Border::refuse(std::string why, std::string hint) {
  throw Refused(Error(ErrorCode::kInvalidInput, std::move(why), std::move(hint)));
}

AtenBuilder& Border::top() {
  NodeId first = graph().first();
  while (first.is_valid() && first.index >= old_nodes_) first = graph().next(first);
  return first.is_valid() ? before(first) : at_end();
}

AtenBuilder& Border::before(NodeId node) {
  rewriter.insert_before(node);
  return f_;
}

AtenBuilder& Border::at_end() {
  rewriter.insert_at_end();
  return f_;
}

// ---- inputs ----

InputSpec& Border::spec(std::string_view name) const {
  auto found = std::ranges::find(component.inputs, name, &InputSpec::name);
  if (found == component.inputs.end() || !found->value.is_valid()) no_such("input", name, component.inputs);
  if (graph()[found->value].tensor() == nullptr) refuse(format("the input {} is no tensor", quoted(name)));
  return *found;
}

ValueId Border::input(std::string_view name) const { return spec(name).value; }

bool Border::has_input(std::string_view name) const {
  const InputSpec* found = find_input(component, name);
  return found != nullptr && found->value.is_valid();
}

std::vector<ValueId> Border::inputs() const {
  std::vector<ValueId> tensors;
  for (const InputSpec& each : component.inputs) {
    if (each.value.is_valid() && graph()[each.value].tensor() != nullptr) tensors.push_back(each.value);
  }
  return tensors;
}

ValueId Border::add_input(std::string name, DType dtype, Sizes shape) {
  if (find_input(component, name) != nullptr) refuse(format("the graph has an input {} already", quoted(name)));
  ValueId value = rewriter.add_input({name, TensorType{dtype, std::move(shape), {}}});
  component.inputs.push_back({std::move(name), value, {}});
  return value;
}

ValueId Border::retype_input(std::string_view name, DType dtype, Sizes shape) {
  InputSpec& input = spec(name);
  return input.value = rewriter.add_input({graph()[input.value].name, TensorType{dtype, std::move(shape), {}}});
}

ValueId Border::take_input(std::string_view name) {
  ValueId value = input(name);
  std::erase_if(component.inputs, [&](const InputSpec& each) { return each.name == name; });
  return value;
}

bool Border::has_size(SymExpr size) const {
  return std::ranges::any_of(inputs(), [&](ValueId each) { return std::ranges::count(type(each).shape, size) > 0; });
}

void Border::replace(ValueId input, ValueId with) {
  const TensorType had = type(input);
  if (had.shape.size() != type(with).shape.size() || had.dtype != type(with).dtype)
    refuse(format("what is to stand for {} is of another type", quoted(graph()[input].name)));
  rewriter.replace_uses(input, with);
  rewriter.erase_input(input);
  std::map<std::string, SymExpr> sizes;
  TensorType given{had.dtype, type(with).shape, {}};
  for (size_t i = 0; i < had.shape.size(); ++i) {
    SymExpr size = had.shape[i];
    if (size == given.shape[i]) continue;
    if (size.kind() == SymKind::kSymbol && !has_size(size))
      sizes.emplace(std::string(size.symbol_name()), given.shape[i]);
    else
      given.shape[i] = size;
  }
  if (given != type(with)) rewriter.set_type(with, std::move(given));
  if (!sizes.empty()) substitute_symbols(component, sizes);
}

// ---- outputs ----

uint32_t Border::output(std::string_view name) const {
  auto found = std::ranges::find(component.outputs, name, &OutputSpec::name);
  if (found == component.outputs.end()) no_such("output", name, component.outputs);
  return static_cast<uint32_t>(found - component.outputs.begin());
}

ValueId Border::output_tensor(std::string_view name) const {
  const ValueId* value = graph().outputs()[output(name)].get_if<ValueId>();
  if (value == nullptr || graph()[*value].tensor() == nullptr)
    refuse(format("the output {} is no tensor", quoted(name)));
  return *value;
}

void Border::add_output(std::string name, ValueId value) {
  check_free("output", name, name);
  std::vector<Argument> outputs(graph().outputs().begin(), graph().outputs().end());
  outputs.emplace_back(value);
  rewriter.set_outputs(std::move(outputs));
  component.outputs.push_back({OutputKind::kUser, std::move(name), {}});
}

void Border::drop_output(std::string_view name) {
  uint32_t index = output(name);
  std::vector<Argument> outputs(graph().outputs().begin(), graph().outputs().end());
  outputs.erase(outputs.begin() + index);
  rewriter.set_outputs(std::move(outputs));
  component.outputs.erase(component.outputs.begin() + index);
}

// ---- sizes and names ----

SymExpr Border::new_size(std::string name) {
  SymExpr size = new_symbol(component, name.empty() ? "any" : name, {.is_integer = true, .is_nonnegative = true});
  if (!name.empty()) component.dim_names[std::string(size.symbol_name())] = std::move(name);
  return size;
}

SymExpr Border::named_size(const std::string& name) {
  for (const auto& [symbol, called] : component.dim_names) {
    if (called == name) return component.symbols->symbol(symbol);
  }
  return new_size(name);
}

int64_t Border::fixed(SymExpr size, std::string_view what) {
  std::optional<int64_t> number = size.is_valid() ? size.as_integer() : std::nullopt;
  if (!number) refuse(format("{} has no last dim of a fixed size", quoted(what)));
  return *number;
}

void Border::check_free(std::string_view kind, std::string_view from, std::string_view to) const {
  if (find_input(component, to) == nullptr &&
      std::ranges::find(component.outputs, to, &OutputSpec::name) == component.outputs.end())
    return;
  refuse(format("the {} {} cannot be called {}: the graph has that name already", kind, quoted(from), quoted(to)));
}

}  // namespace argosy
