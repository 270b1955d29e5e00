#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/program.h"

namespace argosy {

// The parts of verify(). Internal to ir.

/// Collects errors up to a limit. Whoever checks asks is_full() in long loops.
class Findings {
 public:
  Findings(const Program& program, size_t limit) : program_(program), limit_(limit) {}

  bool is_full() const { return diagnostics_.errors.size() >= limit_; }
  size_t count() const { return diagnostics_.errors.size(); }
  void add(std::string message, std::string hint = {});
  /// About a node whose op and location are known to exist.
  void add_at(const Graph& graph, NodeId node, std::string message, std::string hint = {});
  /// Context that all following errors get: "component decode", "graph 1".
  void enter(std::string what) { scopes_.push_back(std::move(what)); }
  void leave() { scopes_.pop_back(); }
  Diagnostics take() { return std::move(diagnostics_); }

 private:
  void push(Error error);

  const Program& program_;
  size_t limit_;
  std::vector<std::string> scopes_;
  Diagnostics diagnostics_;
};

/// Structure of one graph: what a Rewriter keeps true, and what it cannot know (ids of ops, weights, locations and
/// graphs, and types). False: too broken to look at the meaning of its nodes.
bool verify_structure(const Program& program, const Component& component, const Graph& graph, Findings& findings);

/// Each node against its op's schema, and the sub-graphs that it calls. The structure of all graphs of the component
/// must be sound.
void verify_nodes(const Program& program, const Component& component, const Graph& graph, Findings& findings);

/// What is wrong with an argument for a type, as "expected …, found …"; nullopt if it fits.
std::optional<std::string> mismatch(const Graph& graph, size_t graph_count, const Argument& argument,
                                    const SchemaType& type);
/// The same for a result.
std::optional<std::string> result_mismatch(const Value& value, const SchemaType& type);

/// Whether a node's sub-graphs take what it passes and return what it yields.
void verify_calls(const Program& program, const Component& component, const Graph& graph, NodeId node,
                  Findings& findings);

/// The type as a schema writes it: "SymInt[2]?".
std::string to_text(const SchemaType& type);

}  // namespace argosy
