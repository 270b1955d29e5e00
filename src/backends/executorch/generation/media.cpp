#include "backends/executorch/generation/media.h"

#include <algorithm>
#include <map>
#include <set>

#include "backends/executorch/generation/specialise.h"
#include "base/text.h"
#include "border/bind_graphs.h"
#include "border/border.h"
#include "passes/aten_builder.h"

namespace argosy::executorch {
namespace {

Status not_passed(const Component& component, const std::string& name) {
  return fail(ErrorCode::kUnsupportedFeature,
              format("the model's {} is given {}, which runners do not pass", component.name, name),
              "export it without a task; callers then pass everything that it is given");
}

/// Removes inputs that the trace fixed or that nothing reads.
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
  const size_t rank = component.entry()[*features].tensor()->shape.size();
  if (rank != 2 && !(rank == 3 && max_chunks == 1))
    return fail(ErrorCode::kUnsupportedFeature, format("features of {} are not a list of embeddings", component.name));
  if (rank == 3) return {};
  Rewriter rewriter(component.graphs.front());
  RuleContext context{program, component, rewriter, NodeId{}};
  rewriter.set_output(0, AtenBuilder(context).unsqueeze(*features, 0));
  return {};
}

Status bind_embedding(Program& program, Component& component, int64_t max_seq_len) {
  fix_batch(component);
  const InputSpec* tokens = find_input(component, "input_ids");
  if (tokens == nullptr || !tokens->value.is_valid())
    return fail(ErrorCode::kUnsupportedFeature, format("component {} is not given tokens", component.name));
  ARGOSY_TRY_STATUS(keep_outputs(component, {"inputs_embeds"}));
  DropFeatures edit;
  for (const InputSpec& input : component.inputs) {
    if (input.value.is_valid() && input.name != "input_ids") edit.inputs.push_back(input.name);
  }
  ARGOSY_TRY_STATUS(apply_edits(program, component, std::vector<Edit>{std::move(edit)}));
  drop_unused(component, {"input_ids"});
  const TensorType& type = *component.entry()[component.inputs[0].value].tensor();
  if (type.shape.size() == 2 && type.shape[1].kind() == SymKind::kSymbol)
    component.symbols->set_range(type.shape[1], {1, max_seq_len});
  return {};
}

Status bind_plain(Program& program, Component& component, const std::vector<std::string_view>& inputs) {
  fix_batch(component);
  drop_unused(component, {inputs.begin(), inputs.end()});
  const std::vector<InputSpec> all = component.inputs;
  for (const InputSpec& input : all) {
    if (std::ranges::find(inputs, input.name) != inputs.end()) continue;
    bool is_mask = input.name == "attention_mask";
    if (!is_mask && input.name != "token_type_ids") return not_passed(component, input.name);
    FillInput fill{input.name, all.front().name, is_mask ? 1 : 0};
    if (!apply_edits(program, component, std::vector<Edit>{fill})) return not_passed(component, input.name);
  }
  std::vector<InputSpec> ordered;
  for (std::string_view name : inputs) {
    if (const InputSpec* input = find_input(component, name)) ordered.push_back(*input);
  }
  component.inputs = std::move(ordered);
  return {};
}

}  // namespace argosy::executorch
