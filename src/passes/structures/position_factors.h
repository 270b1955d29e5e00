#pragma once

#include <optional>

#include "passes/aten_builder.h"

namespace argosy {

/// Factors of a rotary embedding that depend on the position of a token and on nothing else: the cosine (or sine) of
/// position * frequency, times a number.
struct PositionFactors {
  ValueId positions;    // i64 [batch, tokens], an input of the graph
  ValueId frequencies;  // a weight with one element for each column of the factors
  double scale = 1;
  bool is_sine = false;
  friend bool operator==(const PositionFactors&, const PositionFactors&) = default;
};

/// Reads factors [batch or 1, tokens, columns]; nullopt: they are computed in another way.
std::optional<PositionFactors> read_position_factors(const AtenBuilder& f, ValueId factors);

/// The factors of the positions 0, 1, …, count - 1 as [count, columns].
ValueId table_of(AtenBuilder& f, const PositionFactors& factors, int64_t count, DType dtype);

}  // namespace argosy
