#include <algorithm>
#include <array>

#include "base/text.h"
#include "ir/verify_parts.h"

namespace argosy {
namespace {

/// How one sub-graph of a higher-order op is called: with which arguments of the node, in order, and how many results
/// it gives.
struct CallRule {
  enum class Results : uint8_t { kAsNode, kOne, kAsCarried };
  std::string_view op;
  std::string_view graph;                  // name of the argument
  std::array<std::string_view, 4> passed;  // names of list arguments; "..." for what follows the named ones
  Results results = Results::kAsNode;
};

// A carried list of a loop is both what goes in and what comes out. An associative scan combines two elements.
constexpr CallRule kCallRules[] = {
    {"higher_order.cond", "true_graph", {"operands"}},
    {"higher_order.cond", "false_graph", {"operands"}},
    {"higher_order.while_loop", "cond_graph", {"carried", "additional"}, CallRule::Results::kOne},
    {"higher_order.while_loop", "body_graph", {"carried", "additional"}, CallRule::Results::kAsCarried},
    {"higher_order.wrap_with_set_grad_enabled", "body", {"..."}},
    {"higher_order.wrap_with_autocast", "body", {"..."}},
    {"higher_order.map_impl", "body", {"xs", "additional"}},
    {"higher_order.scan", "combine", {"init", "xs", "additional"}},
    {"higher_order.associative_scan", "combine", {"xs", "xs", "additional"}},
    {"higher_order.delegate", "body", {"operands"}},
};

/// One operand: a value of the calling graph, or (invalid) a constant.
using Operands = std::vector<ValueId>;

void append_operand(Operands& operands, const Argument& argument) {
  const ValueId* id = argument.get_if<ValueId>();
  operands.push_back(id != nullptr ? *id : ValueId{});
}

void append_operands(Operands& operands, const Argument& argument) {
  if (const auto* values = argument.get_if<ValueList>()) {
    operands.insert(operands.end(), values->begin(), values->end());
  } else if (const auto* integers = argument.get_if<IntList>()) {
    for (const IntItem& item : *integers) {
      const ValueId* id = std::get_if<ValueId>(&item);
      operands.push_back(id != nullptr ? *id : ValueId{});
    }
  } else if (const auto* list = argument.get_if<ArgumentList>()) {
    for (const Argument& item : list->items) append_operand(operands, item);
  } else if (const auto* doubles = argument.get_if<DoubleList>()) {
    operands.resize(operands.size() + doubles->size());
  } else if (const auto* bools = argument.get_if<BoolList>()) {
    operands.resize(operands.size() + bools->size());
  } else if (const auto* texts = argument.get_if<StringList>()) {
    operands.resize(operands.size() + texts->size());
  }
}

bool is_same_kind(const Value& a, const Value& b) {
  if ((a.tensor() == nullptr) != (b.tensor() == nullptr)) return false;
  return a.tensor() != nullptr || a.number()->kind == b.number()->kind;
}

class CallVerifier {
 public:
  CallVerifier(const Program& program, const Component& component, const Graph& graph, NodeId node, Findings& findings)
      : schema_(program.schemas[graph[node].op]),
        component_(component),
        graph_(graph),
        id_(node),
        node_(graph[node]),
        findings_(findings) {}

  void check(const CallRule& rule) {
    const GraphId* callee_id = node_.arguments[schema_.find_argument(rule.graph).value()].get_if<GraphId>();
    if (callee_id == nullptr) return;
    const Graph& callee = component_.graphs[callee_id->index];
    std::string what = format("{} (graph {}) of {}", rule.graph, callee_id->index, schema_.name);
    check_operands(what, callee, operands_of(rule));
    size_t expected = node_.outputs.size();
    if (rule.results == CallRule::Results::kOne) expected = 1;
    if (rule.results == CallRule::Results::kAsCarried) {
      Operands carried;
      append_operands(carried, named("carried"));
      expected = carried.size();
      if (expected != node_.outputs.size()) {
        findings_.add_at(
            graph_, id_,
            format("{} carries {} values, but the node has {} results", schema_.name, expected, node_.outputs.size()));
      }
    }
    if (callee.outputs().size() != expected) {
      findings_.add_at(graph_, id_,
                       format("{} returns {} values where {} are needed", what, callee.outputs().size(), expected));
    } else if (rule.results != CallRule::Results::kOne) {
      check_results(what, callee);
    }
  }

 private:
  const Argument& named(std::string_view argument) const {
    return node_.arguments[schema_.find_argument(argument).value()];
  }

  Operands operands_of(const CallRule& rule) const {
    Operands operands;
    for (std::string_view name : rule.passed) {
      if (name.empty()) break;
      if (name != "...") {
        append_operands(operands, named(name));
        continue;
      }
      for (size_t i = schema_.arguments.size(); i < node_.arguments.size(); ++i) {
        append_operand(operands, node_.arguments[i]);
      }
    }
    return operands;
  }

  void check_operands(const std::string& what, const Graph& callee, const Operands& operands) {
    if (callee.inputs().size() != operands.size()) {
      findings_.add_at(graph_, id_,
                       format("{} takes {} inputs, but {} are passed", what, callee.inputs().size(), operands.size()));
      return;
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value& input = callee[callee.inputs()[i]];
      if (operands[i].is_valid() && !is_same_kind(graph_[operands[i]], input)) {
        findings_.add_at(
            graph_, id_,
            format("{} gets %{} for its input %{} of another kind", what, graph_[operands[i]].name, input.name));
      }
    }
  }

  void check_results(const std::string& what, const Graph& callee) {
    for (size_t i = 0; i < callee.outputs().size() && i < node_.outputs.size(); ++i) {
      const ValueId* id = callee.outputs()[i].get_if<ValueId>();
      if (id != nullptr && !is_same_kind(callee[*id], graph_[node_.outputs[i]])) {
        findings_.add_at(graph_, id_,
                         format("{} returns %{} for the result %{} of another kind", what, callee[*id].name,
                                graph_[node_.outputs[i]].name));
      }
    }
  }

  const OpSchema& schema_;
  const Component& component_;
  const Graph& graph_;
  NodeId id_;
  const Node& node_;
  Findings& findings_;
};

}  // namespace

void verify_calls(const Program& program, const Component& component, const Graph& graph, NodeId node,
                  Findings& findings) {
  bool has_graph =
      std::ranges::any_of(graph[node].arguments, [](const Argument& argument) { return argument.is<GraphId>(); });
  if (!has_graph) return;
  for (const CallRule& rule : kCallRules) {
    if (rule.op == program.schemas[graph[node].op].name) {
      CallVerifier(program, component, graph, node, findings).check(rule);
    }
  }
}

}  // namespace argosy
