#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "tensor/box.h"
#include "tensor/source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// Concatenation, and stacking, which is the same with inputs of one index each that lack the dim.
class JoinSource final : public DerivedSource {
 public:
  JoinSource(SourceKind kind, DType dtype, std::vector<TensorSourcePtr> sources, size_t dim, std::vector<int64_t> shape)
      : DerivedSource(kind, dtype, std::move(shape), std::move(sources)), dim_(dim) {
    ends_.reserve(inputs().size());
    int64_t end = 0;
    for (const TensorSourcePtr& source : inputs()) {
      end += kind == SourceKind::kStack ? 1 : source->shape()[dim];
      ends_.push_back(end);
    }
    is_leading_ = std::all_of(this->shape().begin(), this->shape().begin() + static_cast<ptrdiff_t>(dim),
                              [](int64_t size) { return size == 1; });
  }

  size_t dim() const { return dim_; }

  std::string recipe() const override {
    std::vector<std::string> parts;
    parts.reserve(inputs().size());
    for (const TensorSourcePtr& source : inputs()) parts.push_back(source->recipe());
    return format("{}(dim={}, {})", kind() == SourceKind::kStack ? "stack" : "concat", dim_, join(parts, ", "));
  }

  size_t scratch_for(int64_t elements) const override {
    size_t most = 0;
    for (const TensorSourcePtr& source : inputs()) most = std::max(most, source->scratch_for(elements));
    return is_leading_ ? most : saturating_add(most, scratch_cost(dtype(), elements));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < dim_; ++d) outer *= box.extent[d];
    for (size_t d = dim_ + 1; d < box.extent.size(); ++d) inner *= box.extent[d];
    int64_t begin = box.start[dim_], end = begin + box.extent[dim_];
    int64_t row_bytes = bytes_of(dtype(), inner * box.extent[dim_]);
    size_t i = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
    std::byte* next = out.data();
    Box part = box;
    for (; begin < end; ++i) {
      int64_t origin = i == 0 ? 0 : ends_[i - 1];
      int64_t count = std::min(end, ends_[i]) - begin;
      if (count == 0) continue;  // an input without elements
      int64_t part_row_bytes = bytes_of(dtype(), inner * count);
      auto part_bytes = static_cast<size_t>(outer * part_row_bytes);
      if (kind() == SourceKind::kStack) {
        part = box;
        part.start.erase(part.start.begin() + static_cast<ptrdiff_t>(dim_));
        part.extent.erase(part.extent.begin() + static_cast<ptrdiff_t>(dim_));
      } else {
        part.start[dim_] = begin - origin;
        part.extent[dim_] = count;
      }
      if (outer == 1 || part_row_bytes == row_bytes) {
        ARGOSY_TRY_STATUS(inputs()[i]->read(part, {next, part_bytes}, scratch));
      } else {
        size_t mark = scratch.mark();
        std::span<std::byte> values = scratch.take(part_bytes);
        ARGOSY_TRY_STATUS(inputs()[i]->read(part, values, scratch));
        copy_runs(next, row_bytes, values.data(), part_row_bytes, part_row_bytes, outer);
        scratch.release(mark);
      }
      next += part_row_bytes;
      begin += count;
    }
    return {};
  }

  std::optional<FileRange> file_range() const override {
    if (!is_leading_) return std::nullopt;
    std::optional<FileRange> whole;
    for (const TensorSourcePtr& source : inputs()) {
      auto range = source->file_range();
      if (!range) return std::nullopt;
      if (!whole) {
        whole = std::move(range);
      } else if (range->path == whole->path && range->offset == whole->offset + whole->size) {
        whole->size += range->size;
      } else {
        return std::nullopt;
      }
    }
    return whole;
  }

 private:
  size_t dim_;
  std::vector<int64_t> ends_;  // for each input, the first index along the dim behind it
  bool is_leading_;            // all dims before it are 1, so that the inputs lie one behind the other
};

Status check_inputs(const char* what, std::span<const TensorSourcePtr> sources) {
  if (sources.empty()) {
    return fail(ErrorCode::kInvalidInput, format("cannot {} without a tensor", what), "give at least one");
  }
  ARGOSY_TRY_STATUS(check_recipe_limits(sources));
  for (size_t i = 1; i < sources.size(); ++i) {
    if (sources[i]->dtype() != sources[0]->dtype()) {
      return fail(ErrorCode::kInvalidInput,
                  format("cannot {} {} and {} (tensors 0 and {})", what, to_text(sources[0]->dtype()),
                         to_text(sources[i]->dtype()), i),
                  "cast them to one dtype first");
    }
  }
  return {};
}

// `dim` may differ, and is the shape's size where none may.
bool agree_except(std::span<const int64_t> a, std::span<const int64_t> b, size_t dim) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d) {
    if (d != dim && a[d] != b[d]) return false;
  }
  return true;
}

}  // namespace

Result<TensorSourcePtr> concatenated(std::vector<TensorSourcePtr> sources, int dim) {
  ARGOSY_TRY_STATUS(check_inputs("concatenate", sources));
  std::vector<int64_t> shape(sources[0]->shape().begin(), sources[0]->shape().end());
  ARGOSY_TRY_STATUS(check_dim("concatenation", dim, shape.size()));
  DType dtype = sources[0]->dtype();
  auto d = static_cast<size_t>(dim);
  bool is_aligned = true;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::span<const int64_t> other = sources[i]->shape();
    if (!agree_except(shape, other, d)) {
      return fail(ErrorCode::kInvalidInput,
                  format("cannot concatenate {} and {} (tensors 0 and {}) along dim {}", list_text(shape),
                         list_text(other), i, dim),
                  "all other dims must be equal");
    }
    is_aligned &= d + 1 < shape.size() || other[d] % elements_per_unit(dtype) == 0;
    if (i == 0) continue;
    auto sum = checked_add(shape[d], other[d]);
    if (!sum)
      return fail(ErrorCode::kInvalidInput, format("the sum of dim {} of {} tensors overflows", dim, sources.size()));
    shape[d] = *sum;
  }
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, shape));
  if (!is_aligned) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("parts of {} along the last dim are not whole bytes", to_text(dtype)),
                "concatenate before packing");
  }
  // Inputs without elements along the dim add nothing; a join along the same dim adds its parts.
  std::vector<TensorSourcePtr> parts;
  for (const TensorSourcePtr& source : sources) {
    if (source->shape()[d] == 0) continue;
    if (source->kind() == SourceKind::kConcat && static_cast<const JoinSource&>(*source).dim() == d) {
      parts.insert(parts.end(), source->inputs().begin(), source->inputs().end());
    } else {
      parts.push_back(source);
    }
  }
  if (parts.empty()) return sources[0];
  if (parts.size() == 1) return parts[0];
  return std::make_shared<JoinSource>(SourceKind::kConcat, dtype, std::move(parts), d, std::move(shape));
}

Result<TensorSourcePtr> stacked(std::vector<TensorSourcePtr> sources, int dim) {
  ARGOSY_TRY_STATUS(check_inputs("stack", sources));
  std::vector<int64_t> shape(sources[0]->shape().begin(), sources[0]->shape().end());
  ARGOSY_TRY_STATUS(check_dim("stack", dim, shape.size() + 1));
  for (size_t i = 1; i < sources.size(); ++i) {
    if (agree_except(shape, sources[i]->shape(), shape.size())) continue;
    return fail(
        ErrorCode::kInvalidInput,
        format("cannot stack {} and {} (tensors 0 and {})", list_text(shape), list_text(sources[i]->shape()), i),
        "all shapes must be equal");
  }
  DType dtype = sources[0]->dtype();
  auto d = static_cast<size_t>(dim);
  bool is_last = d == shape.size();
  shape.insert(shape.begin() + dim, static_cast<int64_t>(sources.size()));
  if (sources.size() == 1) return reshaped(sources[0], std::move(shape));
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, shape));
  if (is_last && bits_of(dtype) < 8) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("cannot stack {} along the last dim: elements share bytes", to_text(dtype)),
                "stack before packing");
  }
  return std::make_shared<JoinSource>(SourceKind::kStack, dtype, std::move(sources), d, std::move(shape));
}

}  // namespace argosy
