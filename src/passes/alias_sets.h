#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace argosy {

/// Which tensors of one graph share memory: by storage ids, and by the schemas of ops where a value has none. Values
/// that may share memory are in one set too. Linear time.
class AliasSets {
 public:
  AliasSets(const Program& program, const Graph& graph);

  /// The first value of the set, which names it.
  ValueId set_of(ValueId value) const { return ValueId{first_[value.index]}; }
  bool are_aliases(ValueId a, ValueId b) const { return first_[a.index] == first_[b.index]; }

 private:
  uint32_t find(uint32_t value);
  void unite(ValueId a, ValueId b);

  std::vector<uint32_t> first_;  // by index of the value
};

}  // namespace argosy
