#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backends/onnx/document.h"

namespace argosy::onnx {

/// The value of a small constant. Integers and bools are in `ints`, floats in `reals`.
struct Constant {
  DType dtype = DType::kI64;
  std::vector<int64_t> shape;
  std::vector<int64_t> ints;
  std::vector<double> reals;

  bool is_float() const { return kind_of(dtype) == DTypeKind::kFloat; }
  size_t size() const { return is_float() ? reals.size() : ints.size(); }
};

/// Constants of more elements are not folded: they would make a model larger.
inline constexpr int64_t kMaxFoldedElements = 128;

/// nullopt: too large, or of a dtype that is not folded.
std::optional<Constant> read_constant(const TensorSource& source);
TensorSourcePtr to_source(const Constant& constant);

/// The result of a node whose inputs are all constants (null: left out); nullopt: not folded. Same numbers as the op
/// gives: floats are rounded to their type after each step.
std::optional<Constant> fold(const Node& node, std::span<const Constant* const> inputs);

}  // namespace argosy::onnx
