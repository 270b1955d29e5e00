#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace argosy {

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

/// What a mask says.
struct MaskMeaning {
  MaskConditions conditions;
  bool has_padding = false;  // keys that the padding mask hides are hidden, too
  friend bool operator==(const MaskMeaning&, const MaskMeaning&) = default;
};

/// Which keys a token may attend to according to masks of a graph, read from the nodes that compute them. Token i of a
/// call is at position past + i, where past is the number of tokens before the call; keys count from the first token.
class MaskReader {
 public:
  struct Call {
    SymExpr sequence, total;  // sizes of the call, and of all tokens up to its end
    int64_t largest = 0;      // that total can be
    ValueId positions = {};   // an input [sequence] that has the positions of tokens, if there is one
    ValueId padding = {};     // an input [batch, total] that is not 0 where there is a token, if there is one
  };
  /// Looks at the whole graph; values that are added later are not known.
  MaskReader(const Program& program, const Component& component, const Call& call);

  /// Reads a mask [1, …, sequence or 1, total or 1] of booleans, or of zeros and very small numbers; with padding the
  /// first of four dims may be the batch. nullopt: it is something else.
  std::optional<MaskMeaning> read(ValueId mask) const;
  /// Whether every token may attend to every key, in all rows of a batch.
  bool hides_nothing(ValueId mask) const;

 private:
  struct Atom {
    LinearElements elements;  // not negative
  };
  /// Elements of the padding mask, spread over more dims. Dims count from behind, the last is 1.
  struct Padding {
    size_t batch = 2, key = 1;
  };
  struct Known {
    std::optional<LinearElements> elements;    // integers
    std::optional<std::vector<Atom>> allowed;  // booleans, or a mask that is added
    std::optional<Padding> padding;            // of the padding mask itself, or a factor of `allowed`
    std::optional<double> fill;                // the number that all elements are
    bool is_something() const { return elements || allowed || padding || fill; }
  };
  const Known& known(ValueId value) const;
  Known read_node(const Node& node, const TensorType& type) const;
  Known read_comparison(const Node& node, std::string_view op) const;
  Known read_index(const Node& node) const;
  static Known both(const Known& a, const Known& b);
  static void insert_dim(Known& known, size_t rank, size_t place);
  std::optional<LinearElements> elements_of(const Argument& argument) const;
  std::optional<PositionCondition> condition(const LinearElements& elements, const TensorType& mask) const;
  bool always_holds(const PositionCondition& condition) const;

  const Program& program_;
  const Graph& graph_;
  SymContext& symbols_;
  const Call call_;
  std::map<uint32_t, Known> known_;
};

}  // namespace argosy
