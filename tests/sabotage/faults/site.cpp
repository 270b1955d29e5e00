#include "faults/site.h"

#include <algorithm>
#include <cmath>

#include "passes/aten_schemas.h"

namespace argosy::sabotage {

bool Site::is(std::initializer_list<std::string_view> ops) const {
  return node().op.is_valid() && std::ranges::find(ops, op()) != ops.end();
}

const Argument* Site::argument(std::string_view name) const {
  auto index = program().schemas[node().op].find_argument(name);
  return index && *index < node().arguments.size() ? &node().arguments[*index] : nullptr;
}

double Site::number(std::string_view name) const {
  const Argument* found = argument(name);
  if (found == nullptr) return std::nan("");
  if (const auto* integer = found->get_if<int64_t>()) return static_cast<double>(*integer);
  const auto* real = found->get_if<double>();
  return real == nullptr ? std::nan("") : *real;
}

ValueId Site::tensor(std::string_view name) const {
  const Argument* found = argument(name);
  const ValueId* value = found == nullptr ? nullptr : found->get_if<ValueId>();
  return value != nullptr && graph()[*value].tensor() != nullptr ? *value : ValueId{};
}

Site Site::producer_of(ValueId value) const { return {program(), component(), rewriter(), graph()[value].producer}; }

bool Site::is_made_by(ValueId value, std::initializer_list<std::string_view> ops) const {
  return value.is_valid() && graph()[value].producer.is_valid() && producer_of(value).is(ops);
}

ValueId Site::origin(ValueId value) const {
  while (is_made_by(value, {"aten.to.dtype", "aten.to.device", "aten.to.dtype_layout", "aten.type_as.default",
                            "aten.contiguous.default", "aten.dropout.default", "aten._to_copy.default"})) {
    Site made = producer_of(value);
    ValueId from = made.tensor("self");
    value = from.is_valid() ? from : made.tensor("input");
  }
  return value;
}

Weight* Site::weight(ValueId value) const {
  if (!value.is_valid()) return nullptr;
  WeightId id = graph()[origin(value)].weight;
  if (!id.is_valid()) return nullptr;
  while (program()[id].tied_to.is_valid()) id = program()[id].tied_to;
  return &program().weights[id.index];
}

void Site::set(std::string_view argument, Argument value) const {
  rewriter().set_argument(id(), *program().schemas[node().op].find_argument(argument), std::move(value));
}

Result<ValueId> Site::before(std::string_view schema, std::vector<AtenBuilder::Named> arguments, ValueType type) {
  rewriter().insert_before(id());
  return or_refused(
      [&]() -> Result<ValueId> { return AtenBuilder(context_).value(schema, std::move(arguments), std::move(type)); });
}

Result<ValueId> Site::after(std::string_view schema, std::vector<AtenBuilder::Named> arguments, ValueType type) {
  rewriter().insert_after(id());
  return or_refused(
      [&]() -> Result<ValueId> { return AtenBuilder(context_).value(schema, std::move(arguments), std::move(type)); });
}

namespace {

Result<bool> visit(Program& program, const Spoil& spoil, bool is_first_enough) {
  bool has_found = false;
  for (Component& component : program.components) {
    for (Graph& graph : component.graphs) {
      Rewriter rewriter(graph);
      std::vector<NodeId> nodes;  // those of now: what a fault adds is not visited
      for (NodeId node : graph.nodes()) nodes.push_back(node);
      for (NodeId node : nodes) {
        if (!graph.is_live(node)) continue;
        Site site(program, component, rewriter, node);
        ARGOSY_TRY(bool found, spoil(site));
        has_found = has_found || found;
        if (found && is_first_enough) return true;
      }
    }
  }
  return has_found;
}

}  // namespace

Result<bool> at_first(Program& program, const Spoil& spoil) { return visit(program, spoil, true); }
Result<bool> at_each(Program& program, const Spoil& spoil) { return visit(program, spoil, false); }

Result<bool> at_last(Program& program, const std::function<bool(Site&)>& fits, const Spoil& spoil) {
  int count = 0;
  ARGOSY_TRY([[maybe_unused]] bool any, at_each(program, [&](Site& site) -> Result<bool> {
               if (fits(site)) ++count;
               return false;
             }));
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!fits(site) || --count > 0) return false;
    return spoil(site);
  });
}

TensorType fresh(const TensorType& type) { return {type.dtype, type.shape, {}}; }

Argument with_number(const Argument& old, double number) {
  if (old.is<int64_t>()) return static_cast<int64_t>(number);
  return number;
}

void redirect(Rewriter& rewriter, const std::vector<Use>& uses, ValueId old_value, ValueId new_value) {
  for (const Use& use : uses) {
    if (!use.node.is_valid()) continue;
    Argument argument = rewriter.graph()[use.node].arguments[use.argument];
    for_each_value(argument, [&](ValueId& value, uint32_t) {
      if (value == old_value) value = new_value;
    });
    rewriter.set_argument(use.node, use.argument, std::move(argument));
  }
}

Result<ValueId> emit_shifted(Site& site, ValueId value, int64_t dim) {
  const TensorType whole = fresh(*site.type(value));
  auto place = static_cast<size_t>(dim);
  SymContext& symbols = *site.component().symbols;
  TensorType one = whole, rest = whole;
  one.shape[place] = symbols.integer(1);
  rest.shape[place] = symbols.sub(whole.shape[place], symbols.integer(1));
  ARGOSY_TRY(
      ValueId last,
      site.before(aten::kSliceTensor,
                  {{"self", value}, {"dim", dim}, {"start", int64_t{-1}}, {"end", std::numeric_limits<int64_t>::max()}},
                  one));
  ARGOSY_TRY(ValueId others,
             site.before(aten::kSliceTensor,
                         {{"self", value}, {"dim", dim}, {"start", int64_t{0}}, {"end", int64_t{-1}}}, rest));
  return site.before(aten::kCat, {{"tensors", ValueList{last, others}}, {"dim", dim}}, whole);
}

}  // namespace argosy::sabotage
