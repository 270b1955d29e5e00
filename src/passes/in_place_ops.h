#pragma once

#include <span>
#include <string>
#include <vector>

#include "passes/aten_builder.h"

namespace argosy {

/// What an op that writes its first argument does, without writing.
struct InPlaceOp {
  enum class Kind : uint8_t {
    kNone,        // writes nothing
    kFunctional,  // `schema` computes what is written
    kCopy,        // what is written is another tensor, cast and broadcast
    kFill,        // … a number everywhere
    kDiagonal,    // … a number on the diagonal of a matrix
    kIdentity,    // writes nothing after all
    kView,        // changes the shape of its argument: `schema` is a view
    kRefused,     // there is no such op
  };
  Kind kind = Kind::kNone;
  std::string schema;        // text of the op that computes the same
  bool promotes = false;     // it computes in the common dtype of its tensors
  bool gives_truth = false;  // it computes bools
};

InPlaceOp in_place_op(const OpSchema& schema);

/// What the op writes: a tensor of the shape and dtype of the first argument. `arguments` are those of the node.
ValueId what_is_written(AtenBuilder& f, const InPlaceOp& op, std::span<const Argument> arguments);

/// `tensor` with that dtype and shape, cast and broadcast where it needs be; `like` is a tensor of that shape.
ValueId in_form_of(AtenBuilder& f, ValueId tensor, ValueId like);

}  // namespace argosy
