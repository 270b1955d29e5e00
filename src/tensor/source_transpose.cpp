#include <algorithm>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/permute.h"
#include "tensor/source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

std::vector<int64_t> permuted_shape(std::span<const int64_t> shape, std::span<const int> permutation) {
  std::vector<int64_t> result;
  result.reserve(permutation.size());
  for (int dim : permutation) result.push_back(shape[static_cast<size_t>(dim)]);
  return result;
}

std::string permutation_text(std::span<const int> permutation) {
  return list_text(std::vector<int64_t>(permutation.begin(), permutation.end()));
}

// Whether the dims of more than one index keep their order, so that the bytes stay as they are.
bool keeps_order(std::span<const int64_t> extent, std::span<const int> permutation) {
  int last = -1;
  for (int dim : permutation) {
    if (extent[static_cast<size_t>(dim)] == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

class TransposeSource final : public DerivedSource {
 public:
  TransposeSource(TensorSourcePtr source, std::vector<int> permutation)
      : DerivedSource(SourceKind::kTranspose, source->dtype(), permuted_shape(source->shape(), permutation), {source}),
        permutation_(std::move(permutation)) {}

  std::span<const int> permutation() const { return permutation_; }

  std::string recipe() const override {
    return format("transpose({}, {})", input().recipe(), permutation_text(permutation_));
  }

  size_t scratch_for(int64_t elements) const override {
    return saturating_add(scratch_cost(dtype(), elements), input().scratch_for(elements));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    Box from{std::vector<int64_t>(box.start.size()), std::vector<int64_t>(box.start.size())};
    for (size_t d = 0; d < permutation_.size(); ++d) {
      from.start[static_cast<size_t>(permutation_[d])] = box.start[d];
      from.extent[static_cast<size_t>(permutation_[d])] = box.extent[d];
    }
    if (keeps_order(from.extent, permutation_)) return input().read(from, out, scratch);
    size_t mark = scratch.mark();
    std::span<std::byte> values = scratch.take(out.size());
    ARGOSY_TRY_STATUS(input().read(from, values, scratch));
    int64_t element_bytes = bits_of(dtype()) / 8;
    if (bits_of(dtype()) < 8) {
      // The last dim stays in place and is whole bytes: it is moved as such.
      from.extent.back() = bytes_of(dtype(), from.extent.back());
      element_bytes = 1;
    }
    permute_dims(values, from.extent, permutation_, element_bytes, out);
    scratch.release(mark);
    return {};
  }

 private:
  std::vector<int> permutation_;
};

Status check_permutation(std::span<const int> permutation, size_t rank) {
  std::vector<int> sorted(permutation.begin(), permutation.end());
  std::ranges::sort(sorted);
  bool is_permutation = sorted.size() == rank;
  for (size_t d = 0; is_permutation && d < rank; ++d) is_permutation = sorted[d] == static_cast<int>(d);
  if (is_permutation) return {};
  return fail(ErrorCode::kInvalidInput,
              format("{} is not a permutation of {} dims", permutation_text(permutation), rank),
              "name each dim of the tensor once, from 0");
}

}  // namespace

Result<TensorSourcePtr> transposed(TensorSourcePtr source, std::vector<int> permutation) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  size_t rank = source->shape().size();
  ARGOSY_TRY_STATUS(check_permutation(permutation, rank));
  if (std::ranges::is_sorted(permutation)) return source;
  if (source->kind() == SourceKind::kTranspose) {
    const auto& inner = static_cast<const TransposeSource&>(*source);
    for (int& dim : permutation) dim = inner.permutation()[static_cast<size_t>(dim)];
    return transposed(inner.inputs().front(), std::move(permutation));
  }
  if (keeps_order(source->shape(), permutation) || source->elements() == 0) {
    return reshaped(source, permuted_shape(source->shape(), permutation));
  }
  if (bits_of(source->dtype()) < 8 && permutation.back() != static_cast<int>(rank) - 1) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("cannot move the last dim of {}: its elements share bytes",
                       tensor_text(source->dtype(), source->shape())),
                "transpose before packing");
  }
  return std::make_shared<TransposeSource>(std::move(source), std::move(permutation));
}

}  // namespace argosy
