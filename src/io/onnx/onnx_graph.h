#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace argosy {

/// A node as the file has it. Its values are indices of OnnxGraph::values.
struct OnnxNode {
  static constexpr uint32_t kNothing = UINT32_MAX;  // an optional input or output that is left out

  std::string name;
  uint32_t op = 0;  // index of OnnxGraph::ops
  std::vector<uint32_t> inputs, outputs;
  std::vector<std::pair<std::string, int64_t>> integers;  // attributes that are one integer, the first few

  int64_t integer(std::string_view attribute, int64_t otherwise) const;
};

/// The nodes of a graph in the order of the file. Those of a sub-graph stand before the node that it belongs to.
struct OnnxGraph {
  std::vector<std::pair<std::string, std::string>> ops;  // (domain, op_type), each once
  std::vector<std::string> values;                       // names; sub-graphs may have some in common
  std::vector<OnnxNode> nodes;
  std::vector<uint32_t> inputs, outputs, initializers;  // the values of those of the OnnxModel, in the same order
};

/// Numbers ops and values while a graph is read. What the nodes of a sub-graph give is known inside of it only.
class OnnxNumbers {
 public:
  explicit OnnxNumbers(OnnxGraph& graph) : graph_(graph) {}

  uint32_t op(std::string domain, std::string op_type);
  /// A value that is read: the last one given under that name, else one from outside.
  uint32_t read(const std::string& name);
  /// A value that a node gives.
  uint32_t given(const std::string& name);

  void enter_sub_graph() { scopes_.push_back(hidden_.size()); }
  void leave_sub_graph();

 private:
  uint32_t add(const std::string& name);

  OnnxGraph& graph_;
  // Looked up, never iterated.
  std::unordered_map<std::string, uint32_t> ops_, values_;
  std::vector<std::pair<std::string, uint32_t>> hidden_;  // what names of sub-graphs stood for outside of them
  std::vector<size_t> scopes_;                            // where those of each sub-graph begin
};

}  // namespace argosy
