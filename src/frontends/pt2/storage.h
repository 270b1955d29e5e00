#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/rewriter.h"
#include "ir/schema.h"

namespace argosy {

/// Gives storage ids to the values of a component whose file has none: who aliases whom follows from schemas. An output
/// that is certainly new gets a fresh id, one that certainly shares memory with an operand gets the operand's, and one
/// that may do either gets none.
class StorageAssigner {
 public:
  StorageId fresh() { return StorageId{next_++}; }
  /// Ids below `count` are taken.
  void reserve(uint32_t count) { next_ = std::max(next_, count); }

  /// Fills in the storage of tensor outputs of a node that is about to be created.
  void assign(const OpSchema& schema, const Graph& graph, std::span<const Argument> arguments,
              std::vector<NewValue>& outputs);

 private:
  uint32_t next_ = 0;
};

}  // namespace argosy
