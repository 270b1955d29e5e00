#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "tensor/box.h"
#include "tensor/source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// ---- Slice ----

std::vector<int64_t> sliced_shape(std::span<const int64_t> shape, size_t dim, int64_t length) {
  std::vector<int64_t> result(shape.begin(), shape.end());
  result[dim] = length;
  return result;
}

class SliceSource final : public DerivedSource {
 public:
  SliceSource(TensorSourcePtr source, size_t dim, int64_t start, int64_t length)
      : DerivedSource(SourceKind::kSlice, source->dtype(), sliced_shape(source->shape(), dim, length), {source}),
        dim_(dim),
        start_(start) {}

  size_t dim() const { return dim_; }
  int64_t start() const { return start_; }

  std::string recipe() const override {
    return format("slice({}, dim={}, start={}, length={})", input().recipe(), dim_, start_, shape()[dim_]);
  }
  size_t scratch_for(int64_t elements) const override { return input().scratch_for(elements); }
  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    Box from = box;
    from.start[dim_] += start_;
    return input().read(from, out, scratch);
  }
  std::optional<FileRange> file_range() const override {
    for (size_t d = 0; d < dim_; ++d) {
      if (shape()[d] != 1) return std::nullopt;
    }
    auto range = input().file_range();
    if (!range) return std::nullopt;
    int64_t inner = 1;
    for (size_t d = dim_ + 1; d < shape().size(); ++d) inner *= shape()[d];
    range->offset += static_cast<uint64_t>(bytes_of(dtype(), start_ * inner));
    range->size = static_cast<uint64_t>(bytes());
    return range;
  }

 private:
  size_t dim_;
  int64_t start_;
};

// ---- Reshape ----

// Dims [from_begin, from_end) of the input hold the same indices as [to_begin, to_end) of the result, and no smaller
// groups do. A box is mapped group by group, and each maps to one box in the common cases.
struct DimGroup {
  size_t from_begin, from_end, to_begin, to_end;
};

std::vector<DimGroup> group_dims(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<DimGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    DimGroup group{i, i, j, j};
    int64_t from_size = i < from.size() ? from[i++] : 1;
    int64_t to_size = j < to.size() ? to[j++] : 1;
    while (from_size != to_size) {
      if (from_size < to_size) {
        from_size *= from[i++];
      } else {
        to_size *= to[j++];
      }
    }
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

class ReshapeSource final : public DerivedSource {
 public:
  ReshapeSource(TensorSourcePtr source, std::vector<int64_t> shape)
      : DerivedSource(SourceKind::kReshape, source->dtype(), std::move(shape), {source}) {
    if (elements() > 0) groups_ = group_dims(input().shape(), this->shape());
  }

  std::string recipe() const override { return format("reshape({}, {})", input().recipe(), list_text(shape())); }
  size_t scratch_for(int64_t elements) const override { return input().scratch_for(elements); }
  std::optional<FileRange> file_range() const override { return input().file_range(); }
  SourceGroupPtr group() const override { return input().group(); }
  size_t group_index() const override { return input().group_index(); }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    Box from{std::vector<int64_t>(input().shape().size()), std::vector<int64_t>(input().shape().size())};
    // Groups are set in `from` from the innermost on, up to the first that is not one box of the input.
    size_t g = groups_.size();
    Box part;
    while (g > 0 && map_group(groups_[g - 1], box, part, from)) --g;
    if (g == 0) return input().read(from, out, scratch);
    return read_pieces(groups_[g - 1], box, from, out, scratch);
  }

 private:
  std::span<const int64_t> from_shape(const DimGroup& group) const {
    return input().shape().subspan(group.from_begin, group.from_end - group.from_begin);
  }
  BoxRuns runs_of(size_t begin, size_t end, const Box& box) const {
    size_t count = end - begin;
    return BoxRuns(shape().subspan(begin, count), std::span(box.start).subspan(begin, count),
                   std::span(box.extent).subspan(begin, count));
  }

  // Sets the group's dims of `from` if the group's part of the box is one box of the input.
  bool map_group(const DimGroup& group, const Box& box, Box& part, Box& from) const {
    BoxRuns runs = runs_of(group.to_begin, group.to_end, box);
    if (!runs.is_contiguous()) return false;
    BoxRuns::Strip strip;
    runs.next(strip);
    if (contiguous_box(from_shape(group), strip.offset, runs.run(), part) != runs.run()) return false;
    std::ranges::copy(part.start, from.start.begin() + static_cast<ptrdiff_t>(group.from_begin));
    std::ranges::copy(part.extent, from.extent.begin() + static_cast<ptrdiff_t>(group.from_begin));
    return true;
  }

  // The dims inside `group` are set in `from`. Goes through the indices outside of it one by one, and for each through
  // the boxes of the input that make up the group's part; each is contiguous in the output.
  Status read_pieces(const DimGroup& group, const Box& box, Box& from, std::span<std::byte> out,
                     Scratch& scratch) const {
    int64_t inner = 1;
    for (size_t d = group.from_end; d < from.extent.size(); ++d) inner *= from.extent[d];
    std::span<const int64_t> outer_shape = input().shape().first(group.from_begin);
    std::fill_n(from.extent.begin(), group.from_begin, 1);
    std::byte* next = out.data();
    Box part;
    BoxRuns outer_runs = runs_of(0, group.to_begin, box);
    for (BoxRuns::Strip outer; outer_runs.next(outer);) {
      for (int64_t i = 0; i < outer.count * outer_runs.run(); ++i) {
        int64_t index = outer.offset + i / outer_runs.run() * outer.stride + i % outer_runs.run();
        for (size_t d = group.from_begin; d-- > 0;) {
          from.start[d] = index % outer_shape[d];
          index /= outer_shape[d];
        }
        BoxRuns runs = runs_of(group.to_begin, group.to_end, box);
        for (BoxRuns::Strip strip; runs.next(strip);) {
          for (int64_t k = 0; k < strip.count; ++k) {
            for (int64_t done = 0; done < runs.run();) {
              int64_t step =
                  contiguous_box(from_shape(group), strip.offset + k * strip.stride + done, runs.run() - done, part);
              std::ranges::copy(part.start, from.start.begin() + static_cast<ptrdiff_t>(group.from_begin));
              std::ranges::copy(part.extent, from.extent.begin() + static_cast<ptrdiff_t>(group.from_begin));
              auto piece_bytes = static_cast<size_t>(bytes_of(dtype(), step * inner));
              ARGOSY_TRY_STATUS(input().read(from, {next, piece_bytes}, scratch));
              next += piece_bytes;
              done += step;
            }
          }
        }
      }
    }
    ARGOSY_CHECK(next == out.data() + out.size(), recipe());
    return {};
  }

  std::vector<DimGroup> groups_;  // outermost first; none if there are no elements
};

}  // namespace

Result<TensorSourcePtr> sliced(TensorSourcePtr source, int dim, int64_t start, int64_t length) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  ARGOSY_TRY_STATUS(check_dim("slice", dim, source->shape().size()));
  auto d = static_cast<size_t>(dim);
  int64_t size = source->shape()[d];
  if (start < 0 || length < 0 || start > size || length > size - start) {
    return fail(ErrorCode::kInvalidInput,
                format("slice of {} from {} along dim {} of {}", length, start, dim, list_text(source->shape())));
  }
  if (length == size) return source;
  int64_t unit = elements_per_unit(source->dtype());
  if (d + 1 == source->shape().size() && (start % unit != 0 || length % unit != 0)) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("slice of {} from {} along the last dim of {} is not whole bytes", length, start,
                       tensor_text(source->dtype(), source->shape())),
                format("slice at multiples of {}", unit));
  }
  if (source->kind() == SourceKind::kSlice) {
    const auto& inner = static_cast<const SliceSource&>(*source);
    if (inner.dim() == d) return sliced(inner.inputs().front(), dim, inner.start() + start, length);
  }
  return std::make_shared<SliceSource>(std::move(source), d, start, length);
}

Result<TensorSourcePtr> reshaped(TensorSourcePtr source, std::vector<int64_t> shape) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  ARGOSY_TRY(int64_t bytes, checked_tensor_bytes(source->dtype(), shape));
  if (bytes != source->bytes()) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot reshape {} to {}", list_text(source->shape()), list_text(shape)),
                "both must have the same number of elements");
  }
  if (std::ranges::equal(shape, source->shape())) return source;
  if (source->kind() == SourceKind::kReshape) return reshaped(source->inputs().front(), std::move(shape));
  return std::make_shared<ReshapeSource>(std::move(source), std::move(shape));
}

}  // namespace argosy
