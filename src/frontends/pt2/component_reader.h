#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "frontends/pt2/arguments.h"
#include "frontends/pt2/graph_json.h"
#include "frontends/pt2/json_field.h"
#include "frontends/pt2/locations.h"
#include "frontends/pt2/signature.h"
#include "frontends/pt2/storage.h"
#include "frontends/pt2/types.h"

namespace argosy {

/// How deep sub-graphs may nest.
inline constexpr int kMaxGraphDepth = 64;

/// What all graphs of one component share while they are read.
class ComponentReader {
 public:
  ComponentReader(Program& program, Component& component, const GraphJsonOptions& options,
                  const std::map<std::string, SymRange, std::less<>>& ranges);

  /// Finds every op that the graph and its sub-graphs call; reports each unknown one, and fails if there is any.
  Status resolve_ops(const JsonField& graph);
  /// Reads the entry graph as graphs[0], sub-graphs behind it; fills in the component's inputs.
  Status read_entry(const JsonField& graph, std::span<const InputRole> roles);

  const TypeReader& types() const { return types_; }

 private:
  friend class GraphReader;
  struct UnknownOp {
    std::string_view target;
    size_t count = 0;
    std::string node;
    LocationId location;
  };
  Status collect_ops(const JsonField& graph, int depth, std::vector<UnknownOp>& unknown);
  Status read_companion();
  Result<OpId> find_op(const JsonField& node, std::string_view target);

  Program& program_;
  Component& component_;
  const GraphJsonOptions& options_;
  TypeReader types_;
  LocationReader locations_;
  StorageAssigner storages_;
  std::unordered_map<std::string_view, OpId> ops_;  // by target; keys point into the JSON document
  std::map<WeightId, StorageId> weight_storages_;   // tied weights share one
  std::vector<LocationId> companion_locations_;
  std::map<std::string, WeightId> number_weights_;  // by recipe
  int64_t storage_count_ = 0;
};

/// "torch.ops.aten.add.Tensor" -> "aten.add.Tensor"; others as they are.
std::string_view op_name_of_target(std::string_view target);

}  // namespace argosy
