#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ir/graph.h"
#include "ir/schema.h"

namespace argosy {

/// Whose memory an output of a node has.
enum class Aliasing : uint8_t {
  kFresh,    // its own
  kOperand,  // that of an operand
  kUnknown,  // one or the other, by strides or devices that types do not hold
};

struct OutputAlias {
  Aliasing kind = Aliasing::kFresh;
  std::optional<uint32_t> operand;  // index of the argument that it shares memory with, or may share
};

/// What the schema of a node's op, and types, say of output `index`, whose type is `output`. The node need not exist
/// yet. An operand may be a list of tensors.
OutputAlias alias_of(const OpSchema& schema, const Graph& graph, std::span<const Argument> arguments,
                     const ValueType& output, size_t index);

}  // namespace argosy
