#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/op_table.h"
#include "ir/rewriter.h"
#include "passes/pass.h"

namespace argosy {

/// What a rule sees: one node that has the rule's op. It edits through the rewriter, which inserts before that node.
struct RuleContext {
  Program& program;
  Component& component;
  Rewriter& rewriter;
  NodeId node;
};

/// How one op is rewritten. Compiled-in rules are rows of constexpr arrays, one file per family.
struct RewriteRule {
  std::string_view op;    // the root node's op
  std::string_view name;  // what dumps and messages call the rule
  /// True: the node was replaced or changed. False: the rule does not apply here.
  Result<bool> (*apply)(RuleContext&, const RewriteRule&);
  const void* user_data = nullptr;  // a parameter of `apply`
};

/// Rules by op. Beside the compiled-in families there is one that users fill at run time.
class RuleTable {
 public:
  explicit RuleTable(std::span<const std::span<const RewriteRule>> families);
  /// Adds a rule of a user. It is tried after the compiled-in ones of its op.
  Status add(std::string op, std::string name, std::function<Result<bool>(RuleContext&)> apply);
  std::span<const RewriteRule* const> find(std::string_view op) const { return table_.find(op); }

 private:
  struct UserRule {
    std::string op, name;
    std::function<Result<bool>(RuleContext&)> apply;
  };
  static Result<bool> apply_user_rule(RuleContext& context, const RewriteRule& rule);

  OpTable<RewriteRule> table_;
  std::deque<std::unique_ptr<UserRule>> user_rules_;  // rows point at these
};

/// Applies rules until none applies any more, to all graphs but those that are delegated (higher_order.delegate). Nodes
/// that a rule inserts are visited too; nodes that `leaves` returns true for are not touched. Rewriting that does not
/// end after 16 rounds is an error that names the rule.
using Leaves = std::function<bool(const Program&, const Component&, const Graph&, const Node&)>;
Pass apply_rules(std::string name, std::shared_ptr<const RuleTable> rules, Leaves leaves = {});

}  // namespace argosy
