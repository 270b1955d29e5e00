#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace argosy::executorch {

/// A tensor of integers whose element at (i, j, …) is coefficients[0]*i + coefficients[1]*j + … + constant.
struct LinearElements {
  std::vector<int64_t> coefficients;  // one a dim
  SymExpr constant;
};

/// A condition on the position p of a token among all tokens and on that of a key, k: key*k + token*p + offset >= 0.
struct PositionCondition {
  int64_t key = 0, token = 0, offset = 0;
  friend auto operator<=>(const PositionCondition&, const PositionCondition&) = default;
};

/// Attention is allowed where all of these hold. Sorted, each once; conditions that always hold are left out. No
/// condition: everywhere.
using MaskConditions = std::vector<PositionCondition>;

/// k <= p.
inline constexpr PositionCondition kCausal{-1, 1, 0};

/// Which keys a token may attend to according to masks of a graph, read from the nodes that compute them. Token i of a
/// call is at position past + i, where past is the number of tokens before the call; keys count from the first token.
class MaskReader {
 public:
  /// `sequence` and `total` are sizes of the call and of all tokens up to its end, at most `largest`. `positions` is
  /// the input [sequence] that has the positions of tokens. Looks at the whole graph; values that are added later are
  /// not known.
  MaskReader(const Program& program, const Component& component, SymExpr sequence, SymExpr total, int64_t largest,
             ValueId positions);

  /// Reads a mask […, sequence or 1, total or 1] with dims of size 1 in front: of booleans, or of zeros and very small
  /// numbers. nullopt: it is something else.
  std::optional<MaskConditions> read(ValueId mask) const;

 private:
  struct Atom {
    LinearElements elements;  // not negative
  };
  struct Known {
    std::optional<LinearElements> elements;    // integers
    std::optional<std::vector<Atom>> allowed;  // booleans, or a mask that is added
  };
  const Known& known(ValueId value) const;
  Known read_node(const Node& node, const TensorType& type) const;
  Known read_comparison(const Node& node, std::string_view op) const;
  std::optional<LinearElements> elements_of(const Argument& argument) const;
  std::optional<PositionCondition> condition(const LinearElements& elements, const TensorType& mask) const;
  bool always_holds(const PositionCondition& condition) const;

  const Program& program_;
  const Graph& graph_;
  SymContext& symbols_;
  SymExpr sequence_, total_;
  int64_t largest_;
  ValueId positions_;
  std::map<uint32_t, Known> known_;
};

}  // namespace argosy::executorch
