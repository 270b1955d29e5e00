#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// What the combinators share: type, inputs and their totals. Internal to this layer.
class DerivedSource : public TensorSource {
 public:
  DType dtype() const final { return dtype_; }
  std::span<const int64_t> shape() const final { return shape_; }
  SourceKind kind() const final { return kind_; }
  std::span<const TensorSourcePtr> inputs() const final { return inputs_; }
  int depth() const final { return depth_; }
  int64_t node_count() const final { return node_count_; }

 protected:
  DerivedSource(SourceKind kind, DType dtype, std::vector<int64_t> shape, std::vector<TensorSourcePtr> inputs);
  const TensorSource& input() const { return *inputs_.front(); }

 private:
  SourceKind kind_;
  DType dtype_;
  std::vector<int64_t> shape_;
  std::vector<TensorSourcePtr> inputs_;
  int depth_ = 0;
  int64_t node_count_ = 1;
};

/// An error if a recipe over these inputs would exceed the limits of depth or size. No input may be null.
Status check_recipe_limits(std::span<const TensorSourcePtr> inputs);
/// An error unless 0 <= dim < rank; `what` names the recipe.
Status check_dim(const char* what, int dim, size_t rank);
/// "[1, 0]"
std::string list_text(std::span<const int64_t> values);

/// Sizes that saturate at SIZE_MAX instead of wrapping.
inline size_t saturating_add(size_t a, size_t b) {
  size_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<size_t>::max() : sum;
}
/// Scratch::cost of so many elements.
size_t scratch_cost(DType dtype, int64_t elements);
/// Bytes of so many elements that are known to be a whole number of bytes.
inline int64_t bytes_of(DType dtype, int64_t elements) { return elements * bits_of(dtype) / 8; }

}  // namespace argosy
