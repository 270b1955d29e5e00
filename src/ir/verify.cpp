#include "ir/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/text.h"
#include "ir/text_syntax.h"
#include "ir/verify_parts.h"

namespace argosy {

void Findings::push(Error error) {
  if (is_full()) return;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) error.in(*scope);
  diagnostics_.errors.push_back(std::move(error));
}

void Findings::add(std::string message, std::string hint) {
  push(Error(ErrorCode::kInvalidInput, std::move(message), std::move(hint)));
}

void Findings::add_at(const Graph& graph, NodeId node, std::string message, std::string hint) {
  push(at_node(Error(ErrorCode::kInvalidInput, std::move(message), std::move(hint)), program_, graph, node));
}

namespace {

class ProgramVerifier {
 public:
  ProgramVerifier(const Program& program, size_t max_errors) : program_(program), findings_(program, max_errors) {}

  Diagnostics run() {
    check_weights();
    std::unordered_set<std::string_view> names;
    for (const Component& component : program_.components) {
      if (findings_.is_full()) break;
      findings_.enter("component " + quoted(component.name));
      if (component.name.empty()) findings_.add("a component has no name");
      if (!names.insert(component.name).second) {
        findings_.add(format("two components are named {}", quoted(component.name)));
      }
      check_component(component);
      findings_.leave();
    }
    return findings_.take();
  }

 private:
  void check_weights() {
    for (uint32_t i = 0; i < program_.weights.size() && !findings_.is_full(); ++i) {
      const Weight& weight = program_.weights[i];
      std::string what = "weight " + quoted(weight.name);
      if (weight.name.empty()) findings_.add(format("weight {} has no name", i));
      if (!weights_.emplace(weight.name, &weight).second)
        findings_.add(format("two weights are named {}", quoted(weight.name)));
      if (!element_count(weight.shape)) findings_.add(format("{} has an impossible shape", what));
      if (weight.source == nullptr) {
        findings_.add(format("{} has no source", what));
      } else if (weight.source->dtype() != weight.dtype || !std::ranges::equal(weight.source->shape(), weight.shape)) {
        findings_.add(format("{} has another dtype or shape than its source, {}", what, weight.source->recipe()));
      }
      if (!weight.tied_to.is_valid()) continue;
      if (weight.tied_to.index >= i) {
        findings_.add(format("{} is tied to a weight that does not come before it", what));
      } else if (const Weight& other = program_[weight.tied_to];
                 other.dtype != weight.dtype || other.shape != weight.shape) {
        findings_.add(format("{} is tied to {} of another dtype or shape", what, quoted(other.name)));
      }
    }
  }

  void check_component(const Component& component) {
    if (component.symbols == nullptr) return findings_.add("it has no symbols");
    if (component.graphs.empty()) return findings_.add("it has no graph");
    bool is_sound = true;
    for_each_graph(component, [&](const Graph& graph) {
      is_sound = verify_structure(program_, component, graph, findings_) && is_sound;
    });
    // What follows looks through ids, so they have to be good.
    if (!is_sound) return;
    check_reachability(component);
    for_each_graph(component, [&](const Graph& graph) { verify_nodes(program_, component, graph, findings_); });
    check_inputs(component);
    check_outputs(component);
  }

  template <class Check>
  void for_each_graph(const Component& component, const Check& check) {
    for (size_t i = 0; i < component.graphs.size() && !findings_.is_full(); ++i) {
      if (component.graphs.size() > 1) findings_.enter(format("graph {}", i));
      check(component.graphs[i]);
      if (component.graphs.size() > 1) findings_.leave();
    }
  }

  // Each sub-graph is called by one node, and a walk from the entry gets to all: so no graph calls itself.
  void check_reachability(const Component& component) {
    std::vector<std::vector<uint32_t>> callees(component.graphs.size());
    std::vector<size_t> callers(component.graphs.size());
    for (size_t i = 0; i < component.graphs.size(); ++i) {
      for (NodeId node : component.graphs[i].nodes()) {
        for (const Argument& argument : component.graphs[i][node].arguments) {
          const GraphId* callee = argument.get_if<GraphId>();
          if (callee == nullptr) continue;
          callees[i].push_back(callee->index);
          ++callers[callee->index];
        }
      }
    }
    if (callers[0] > 0) findings_.add("the entry graph is used as a sub-graph");
    for (size_t i = 1; i < callers.size() && !findings_.is_full(); ++i) {
      if (callers[i] > 1) findings_.add(format("graph {} is used {} times", i, callers[i]), "give each use a copy");
    }
    std::vector<bool> is_reached(component.graphs.size());
    std::vector<uint32_t> pending = {0};
    is_reached[0] = true;
    while (!pending.empty()) {
      uint32_t graph = pending.back();
      pending.pop_back();
      for (uint32_t callee : callees[graph]) {
        if (is_reached[callee]) continue;
        is_reached[callee] = true;
        pending.push_back(callee);
      }
    }
    for (size_t i = 1; i < is_reached.size() && !findings_.is_full(); ++i) {
      if (!is_reached[i]) findings_.add(format("graph {} cannot be reached from the entry graph", i));
    }
  }

  void check_inputs(const Component& component) {
    const Graph& entry = component.entry();
    std::unordered_set<std::string_view> names;
    std::vector<bool> is_input(entry.value_limit()), is_bound(entry.value_limit());
    for (ValueId id : entry.inputs()) is_input[id.index] = true;
    for (const InputSpec& input : component.inputs) {
      if (findings_.is_full()) return;
      std::string what = "input " + quoted(input.name);
      if (input.name.empty()) findings_.add("an input has no name");
      if (!names.insert(input.name).second) findings_.add(format("two inputs are named {}", quoted(input.name)));
      if (!input.value.is_valid()) {
        const Argument& constant = input.constant;
        if (!constant.is<None>() && !constant.is<bool>() && !constant.is<int64_t>() && !constant.is<double>() &&
            !constant.is<std::string>()) {
          findings_.add(format("{} is fixed to something other than none, a bool, a number or a string", what));
        }
        continue;
      }
      if (!input.constant.is<None>()) findings_.add(format("{} has a value and a constant", what));
      if (input.value.index >= is_input.size() || !is_input[input.value.index]) {
        findings_.add(format("{} stands for a value that is no input of the entry graph", what));
        continue;
      }
      if (is_bound[input.value.index]) {
        findings_.add(format("{} stands for %{}, as another input does", what, entry[input.value].name));
      }
      is_bound[input.value.index] = true;
    }
    for (ValueId id : entry.inputs()) {
      if (!is_bound[id.index]) findings_.add(format("no input stands for %{} of the entry graph", entry[id].name));
    }
  }

  void check_outputs(const Component& component) {
    const Graph& entry = component.entry();
    if (component.outputs.size() != entry.outputs().size()) {
      findings_.add(format("{} outputs are described, but the entry graph returns {}", component.outputs.size(),
                           entry.outputs().size()));
      return;
    }
    std::unordered_set<std::string_view> inputs;
    for (const InputSpec& input : component.inputs) inputs.insert(input.name);
    for (size_t i = 0; i < component.outputs.size() && !findings_.is_full(); ++i) {
      const OutputSpec& output = component.outputs[i];
      std::string what = format("output {} ({})", i, name_of(output.kind));
      bool is_mutation = output.kind != OutputKind::kUser && output.kind != OutputKind::kLoss;
      if (!is_mutation) {
        if (!output.target.empty()) findings_.add(format("{} has a target, which only mutations have", what));
        continue;
      }
      const ValueId* value = entry.outputs()[i].get_if<ValueId>();
      if (value == nullptr || entry[*value].tensor() == nullptr) findings_.add(format("{} is not a tensor", what));
      if (output.kind == OutputKind::kInputMutation) {
        if (!inputs.contains(output.target)) {
          findings_.add(format("{} targets {}, which is no input", what, quoted(output.target)));
        }
        continue;
      }
      auto weight = weights_.find(output.target);
      bool is_parameter = weight != weights_.end() && weight->second->kind == WeightKind::kParameter;
      if (weight == weights_.end() || is_parameter != (output.kind == OutputKind::kParameterMutation)) {
        findings_.add(format("{} targets {}, which is no {}", what, quoted(output.target),
                             output.kind == OutputKind::kParameterMutation ? "parameter" : "buffer"));
      }
    }
  }

  const Program& program_;
  Findings findings_;
  std::unordered_map<std::string_view, const Weight*> weights_;
};

}  // namespace

Diagnostics verify(const Program& program, size_t max_errors) { return ProgramVerifier(program, max_errors).run(); }

Status verify_first(const Program& program) {
  Diagnostics diagnostics = verify(program, 1);
  if (diagnostics.errors.empty()) return {};
  return fail(std::move(diagnostics.errors.front()));
}

}  // namespace argosy
