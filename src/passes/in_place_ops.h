#pragma once

#include <span>
#include <string>
#include <vector>

#include "passes/aten_builder.h"

namespace argosy {

/// How to compute what an op writes to its first argument, without writing.
struct InPlaceOp {
  enum class Kind : uint8_t {
    kNone,        // writes nothing
    kFunctional,  // `schema` computes what is written
    kCopy,        // what is written is another tensor, cast and broadcast
    kFill,        // … a number everywhere
    kDiagonal,    // … a number on the diagonal of a matrix
    kIdentity,    // changes no element (detach_)
    kView,        // changes the shape of its argument: `schema` is a view
    kRefused,     // has no functional form
  };
  Kind kind = Kind::kNone;
  std::string schema;        // text of the op that computes the same
  bool promotes = false;     // it computes in the common dtype of its tensors
  bool gives_truth = false;  // it computes bools
};

InPlaceOp in_place_op(const OpSchema& schema);

/// What the op writes: a tensor of the shape and dtype of the first argument. `arguments` are those of the node.
ValueId what_is_written(AtenBuilder& f, const InPlaceOp& op, std::span<const Argument> arguments);

/// `tensor` in the dtype and shape of `like`, cast and broadcast where needed.
ValueId in_form_of(AtenBuilder& f, ValueId tensor, ValueId like);

}  // namespace argosy
