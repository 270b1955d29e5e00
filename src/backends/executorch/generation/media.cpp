#include "backends/executorch/generation/media.h"

#include <algorithm>
#include <map>
#include <set>

#include "backends/executorch/generation/decoder.h"
#include "backends/executorch/generation/specialise.h"
#include "base/text.h"
#include "passes/aten_schemas.h"
#include "passes/emitter.h"
#include "passes/match.h"

namespace argosy::executorch {
namespace {

Status not_passed(const Component& component, const std::string& name) {
  return fail(ErrorCode::kUnsupportedFeature,
              format("the model's {} is given {}, which runners do not pass", component.name, name),
              "export it without a task; callers then pass everything that it is given");
}

/// Inputs that the trace fixed or that nothing reads go.
void drop_unused(Component& component, const std::set<std::string>& wanted) {
  Rewriter rewriter(component.graphs.front());
  std::erase_if(component.inputs, [&](const InputSpec& input) {
    if (!input.value.is_valid()) return true;
    if (wanted.contains(input.name) || !component.entry()[input.value].uses.empty()) return false;
    rewriter.erase_input(input.value);
    return true;
  });
}

}  // namespace

void fix_batch(Component& component) {
  std::map<std::string, SymExpr> replacements;
  for (const auto& [symbol, name] : component.dim_names) {
    if (name == "batch") replacements[symbol] = component.symbols->integer(1);
  }
  specialise(component, replacements);
  for (const auto& [symbol, one] : replacements) component.dim_names.erase(symbol);
}

Status bind_media(Program& program, Component& component, int64_t max_chunks) {
  std::set<std::string> wanted = {component.inputs.empty() ? "" : component.inputs.front().name};
  if (max_chunks == 1) {
    fix_batch(component);
  } else {
    for (auto& [symbol, name] : component.dim_names) {
      if (name != "batch") continue;
      name = "chunks";
      SymExpr size = component.symbols->symbol(symbol);
      SymRange range = component.symbols->range(size);
      component.symbols->set_range(size, {range.min, std::min(range.max, max_chunks)});
    }
  }
  drop_unused(component, wanted);
  if (component.inputs.size() != 1)
    return not_passed(component, component.inputs.empty() ? "nothing" : component.inputs[1].name);
  if (component.outputs.empty() || component.outputs.front().kind != OutputKind::kUser)
    return fail(ErrorCode::kUnsupportedFeature, format("component {} gives no features", component.name));
  ARGOSY_TRY_STATUS(keep_outputs(component, {component.outputs.front().name}));
  const ValueId* features = component.entry().outputs()[0].get_if<ValueId>();
  if (features == nullptr || component.entry()[*features].tensor() == nullptr)
    return fail(ErrorCode::kUnsupportedFeature, format("component {} gives no features", component.name));
  TensorType type{component.entry()[*features].tensor()->dtype, component.entry()[*features].tensor()->shape, {}};
  if (type.shape.size() != 2 && !(type.shape.size() == 3 && max_chunks == 1))
    return fail(ErrorCode::kUnsupportedFeature, format("features of {} are not a list of embeddings", component.name));
  if (type.shape.size() == 3) return {};
  Rewriter rewriter(component.graphs.front());
  RuleContext context{program, component, rewriter, NodeId{}};
  Emitter emit(context);
  type.shape.insert(type.shape.begin(), component.symbols->integer(1));
  ARGOSY_TRY(ValueId result, emit(aten::kUnsqueeze, {{"self", *features}, {"dim", int64_t{0}}}, std::move(type)));
  rewriter.set_output(0, result);
  return {};
}

Status bind_embedding(Program& program, Component& component, int64_t max_seq_len) {
  fix_batch(component);
  const InputSpec* tokens = find_input(component, "input_ids");
  if (tokens == nullptr || !tokens->value.is_valid())
    return fail(ErrorCode::kUnsupportedFeature, format("component {} is not given tokens", component.name));
  Graph& graph = component.graphs.front();
  Rewriter rewriter(graph);
  std::set<uint32_t> from_features;
  for (const InputSpec& input : component.inputs) {
    if (input.value.is_valid() && input.name != "input_ids") from_features.insert(input.value.index);
  }
  // Where tokens of media have features, as far as there are any, and others an embedding, there are only others.
  for (NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    auto is_from_features = [&](const Argument& argument) {
      bool found = false;
      for_each_value(argument, [&](ValueId value, uint32_t) {
        if (value.is_valid() && from_features.contains(value.index)) found = true;
      });
      return found;
    };
    if (program.schemas[node.op].name == "aten.where.self" && node.arguments.size() == 3 &&
        is_from_features(node.arguments[1]) != is_from_features(node.arguments[2])) {
      const Argument& kept = node.arguments[is_from_features(node.arguments[1]) ? 2 : 1];
      ValueId other = std::get<ValueId>(kept.variant());
      if (graph[other].tensor()->shape == graph[node.outputs[0]].tensor()->shape) {
        rewriter.replace(id, std::vector<ValueId>{other});
        continue;
      }
    }
    if (std::ranges::any_of(node.arguments, is_from_features)) {
      for (ValueId output : node.outputs) from_features.insert(output.index);
    }
  }
  ARGOSY_TRY_STATUS(keep_outputs(component, {"inputs_embeds"}));
  if (const ValueId* result = graph.outputs()[0].get_if<ValueId>();
      result == nullptr || from_features.contains(result->index))
    return fail(ErrorCode::kUnsupportedFeature, "embeddings of texts are not to be had apart from those of media");
  for (NodeId id = graph.last(); id.is_valid();) {
    NodeId previous = graph.previous(id);
    bool is_unused = std::ranges::all_of(graph[id].outputs, [&](ValueId value) { return graph[value].uses.empty(); });
    if (is_unused) rewriter.erase(id);
    id = previous;
  }
  drop_unused(component, {"input_ids"});
  if (component.inputs.size() != 1) return not_passed(component, component.inputs.back().name);
  const TensorType& type = *graph[component.inputs[0].value].tensor();
  if (type.shape.size() == 2 && type.shape[1].kind() == SymKind::kSymbol)
    component.symbols->set_range(type.shape[1], {1, max_seq_len});
  return {};
}

Status bind_plain(Program& program, Component& component, const std::vector<std::string_view>& inputs) {
  fix_batch(component);
  drop_unused(component, {inputs.begin(), inputs.end()});
  Graph& graph = component.graphs.front();
  Rewriter rewriter(graph);
  if (graph.first().is_valid()) rewriter.insert_before(graph.first());
  RuleContext context{program, component, rewriter, NodeId{}};
  Emitter emit(context);
  const std::vector<InputSpec> all = component.inputs;
  const InputSpec* sized = all.empty() ? nullptr : &all.front();
  for (const InputSpec& input : all) {
    if (std::ranges::find(inputs, input.name) != inputs.end()) continue;
    bool is_mask = input.name == "attention_mask";
    if (!is_mask && input.name != "token_type_ids") return not_passed(component, input.name);
    TensorType type{emit.type(input.value).dtype, emit.type(input.value).shape, {}};
    IntList sizes;
    for (SymExpr size : type.shape) {
      if (auto number = size.as_integer()) {
        sizes.emplace_back(*number);
        continue;
      }
      const std::vector<SymExpr>& shape = emit.type(sized->value).shape;
      auto same = std::ranges::find(shape, size);
      if (same == shape.end() || sized->name == input.name) return not_passed(component, input.name);
      ARGOSY_TRY(IntItem number, emit.size(sized->value, same - shape.begin()));
      sizes.push_back(number);
    }
    ARGOSY_TRY(
        ValueId bound,
        emit(aten::kFull, {{"size", sizes}, {"fill_value", int64_t{is_mask ? 1 : 0}}, {"dtype", type.dtype}}, type));
    // Nodes before may not exist: sizes are looked at first.
    rewriter.replace_uses(input.value, bound);
    rewriter.erase_input(input.value);
    std::erase_if(component.inputs, [&](const InputSpec& spec) { return spec.name == input.name; });
  }
  std::vector<InputSpec> ordered;
  for (std::string_view name : inputs) {
    if (const InputSpec* input = find_input(component, name)) ordered.push_back(*input);
  }
  component.inputs = std::move(ordered);
  return {};
}

}  // namespace argosy::executorch
