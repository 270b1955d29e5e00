#include "passes/rewrite_rules.h"

#include "base/text.h"

namespace argosy {
namespace {

constexpr int kMaxRounds = 16;

// One walk over the graph: the first rule that applies to a node wins. What it inserted is before the node, so it is
// seen in the next round.
Result<std::string_view> apply_once(Program& program, Component& component, Graph& graph, const RuleTable& rules,
                                    const Leaves& leaves) {
  std::string_view last_applied;
  Rewriter rewriter(graph);
  for (NodeId node : graph.nodes()) {
    std::span<const RewriteRule* const> candidates = rules.find(program.schemas[graph[node].op].name);
    if (candidates.empty() || (leaves && leaves(program, component, graph, graph[node]))) continue;
    for (const RewriteRule* rule : candidates) {
      rewriter.insert_before(node);
      RuleContext context{program, component, rewriter, node};
      Result<bool> has_applied = rule->apply(context, *rule);
      if (!has_applied) {
        Error error = std::move(has_applied).error();
        error.in(format("rule {}", rule->name));
        if (graph.is_live(node)) return fail(at_node(std::move(error), program, graph, node));
        return fail(std::move(error));
      }
      if (*has_applied) {
        last_applied = rule->name;
        break;
      }
    }
  }
  return last_applied;
}

/// For each graph, whether a delegate computes it.
std::vector<bool> delegated_graphs(const Program& program, const Component& component) {
  std::vector<bool> is_delegated(component.graphs.size(), false);
  std::optional<OpId> delegate = program.schemas.find("higher_order.delegate");
  for (const Graph& graph : component.graphs) {
    for (NodeId node : graph.nodes()) {
      if (graph[node].op == delegate) is_delegated[std::get<GraphId>(graph[node].arguments[1].variant()).index] = true;
    }
  }
  return is_delegated;
}

}  // namespace

RuleTable::RuleTable(std::span<const std::span<const RewriteRule>> families)
    : table_(families, OpTable<RewriteRule>::Duplicates::kAllow) {}

Status RuleTable::add(std::string op, std::string name, std::function<Result<bool>(RuleContext&)> apply) {
  auto rule = std::make_unique<UserRule>(UserRule{std::move(op), std::move(name), std::move(apply)});
  ARGOSY_TRY_STATUS(
      table_.add({.op = rule->op, .name = rule->name, .apply = apply_user_rule, .user_data = rule.get()}));
  user_rules_.push_back(std::move(rule));
  return {};
}

Result<bool> RuleTable::apply_user_rule(RuleContext& context, const RewriteRule& rule) {
  return static_cast<const UserRule*>(rule.user_data)->apply(context);
}

Pass apply_rules(std::string name, std::shared_ptr<const RuleTable> rules, Leaves leaves) {
  auto run = [rules = std::move(rules), leaves = std::move(leaves)](Program& program, PassContext&) -> Result<bool> {
    bool has_changed = false;
    for (Component& component : program.components) {
      std::vector<bool> is_delegated = delegated_graphs(program, component);
      for (size_t i = 0; i < component.graphs.size(); ++i) {
        if (is_delegated[i]) continue;
        std::string_view last_applied;
        for (int round = 0; round <= kMaxRounds; ++round) {
          ARGOSY_TRY(last_applied, apply_once(program, component, component.graphs[i], *rules, leaves));
          if (last_applied.empty()) break;
          has_changed = true;
        }
        if (!last_applied.empty()) {
          return fail(ErrorCode::kInvalidInput,
                      format("rewriting does not end after {} rounds: rule {} still applies", kMaxRounds, last_applied),
                      "two rules undo each other, or one rewrites what it makes");
        }
      }
    }
    return has_changed;
  };
  return {std::move(name), std::move(run)};
}

}  // namespace argosy
