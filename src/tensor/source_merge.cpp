#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/float_mode.h"
#include "tensor/merge.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// Rows and columns that are computed at a time: the part of `right` that they need is read once for all rows.
constexpr int64_t kMergeRows = 64;
constexpr int64_t kMergeColumns = 2048;

using MergeLanes = float __attribute__((vector_size(32)));
constexpr int64_t kMergeLanes = 8;

// sums[c] += factor * row[c]
__attribute__((noinline)) void add_row(float* sums, const float* row, float factor, int64_t count) {
  int64_t i = 0;
  for (; i + kMergeLanes <= count; i += kMergeLanes) {
    MergeLanes total, lanes;
    std::memcpy(&total, sums + i, sizeof(total));
    std::memcpy(&lanes, row + i, sizeof(lanes));
    lanes = lanes * factor;
    total = total + lanes;
    std::memcpy(sums + i, &total, sizeof(total));
  }
  for (; i < count; ++i) {
    float product = row[i] * factor;
    sums[i] += product;
  }
}

class MergeSource final : public DerivedSource {
 public:
  MergeSource(std::vector<TensorSourcePtr> inputs, float scale)
      : DerivedSource(SourceKind::kComputed, inputs[0]->dtype(), {inputs[0]->shape().begin(), inputs[0]->shape().end()},
                      inputs),
        scale_(scale),
        rank_(inputs[1]->shape()[1]) {}

  std::string recipe() const override {
    return format("add_product({}, {}, {}, {})", input().recipe(), left().recipe(), right().recipe(), scale_);
  }

  size_t scratch_for(int64_t elements) const override {
    int64_t rows = std::min(elements, kMergeRows), columns = std::min(elements, kMergeColumns);
    int64_t tile = std::min(elements, kMergeRows * kMergeColumns);
    size_t floats = scratch_cost(DType::kF32, rows * rank_);
    for (int64_t count : {columns * rank_, tile, columns}) {
      floats = saturating_add(floats, scratch_cost(DType::kF32, count));
    }
    size_t reading = std::max({scratch_to_read(input(), tile), scratch_to_read(left(), rows * rank_),
                               scratch_to_read(right(), columns * rank_), scratch_cost(dtype(), tile)});
    return saturating_add(floats, reading);
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    for (int64_t row = 0; row < box.extent[0]; row += kMergeRows) {
      for (int64_t column = 0; column < box.extent[1]; column += kMergeColumns) {
        Box tile{{box.start[0] + row, box.start[1] + column},
                 {std::min(kMergeRows, box.extent[0] - row), std::min(kMergeColumns, box.extent[1] - column)}};
        size_t mark = scratch.mark();
        std::byte* first = out.data() + bytes_of(dtype(), row * box.extent[1] + column);
        ARGOSY_TRY_STATUS(read_tile(tile, first, bytes_of(dtype(), box.extent[1]), scratch));
        scratch.release(mark);
      }
    }
    return {};
  }

 private:
  const TensorSource& left() const { return *inputs()[1]; }
  const TensorSource& right() const { return *inputs()[2]; }

  static size_t scratch_to_read(const TensorSource& source, int64_t elements) {
    return saturating_add(scratch_cost(source.dtype(), elements), source.scratch_for(elements));
  }

  static Result<float*> read_floats(const TensorSource& source, const Box& box, Scratch& scratch) {
    auto floats = scratch.take(static_cast<size_t>(box_elements(box)) * sizeof(float));
    if (source.dtype() == DType::kF32) {
      ARGOSY_TRY_STATUS(source.read(box, floats, scratch));
    } else {
      size_t mark = scratch.mark();
      auto stored = scratch.take(static_cast<size_t>(bytes_of(source.dtype(), box_elements(box))));
      ARGOSY_TRY_STATUS(source.read(box, stored, scratch));
      cast_elements(source.dtype(), stored, DType::kF32, floats);
      scratch.release(mark);
    }
    return reinterpret_cast<float*>(floats.data());
  }

  /// Rows of the tile go to `out`, `step` bytes apart.
  Status read_tile(const Box& tile, std::byte* out, int64_t step, Scratch& scratch) const {
    int64_t rows = tile.extent[0], columns = tile.extent[1];
    ARGOSY_TRY(float* base, read_floats(input(), tile, scratch));
    ARGOSY_TRY(float* factors, read_floats(left(), {{tile.start[0], 0}, {rows, rank_}}, scratch));
    ARGOSY_TRY(float* matrix, read_floats(right(), {{0, tile.start[1]}, {rank_, columns}}, scratch));
    auto sums = reinterpret_cast<float*>(scratch.take(static_cast<size_t>(columns) * sizeof(float)).data());
    {
      DefaultFloatMode mode;
      for (int64_t row = 0; row < rows; ++row) {
        std::fill_n(sums, columns, 0.0f);
        for (int64_t k = 0; k < rank_; ++k) add_row(sums, matrix + k * columns, factors[row * rank_ + k], columns);
        add_row(base + row * columns, sums, scale_, columns);
      }
    }
    std::span<const std::byte> floats(reinterpret_cast<const std::byte*>(base),
                                      static_cast<size_t>(rows * columns) * sizeof(float));
    if (dtype() == DType::kF32) {
      copy_runs(out, step, floats.data(), bytes_of(dtype(), columns), bytes_of(dtype(), columns), rows);
      return {};
    }
    auto rounded = scratch.take(static_cast<size_t>(bytes_of(dtype(), rows * columns)));
    cast_elements(DType::kF32, floats, dtype(), rounded);
    copy_runs(out, step, rounded.data(), bytes_of(dtype(), columns), bytes_of(dtype(), columns), rows);
    return {};
  }

  float scale_;
  int64_t rank_;
};

}  // namespace

Result<TensorSourcePtr> product_added(TensorSourcePtr base, TensorSourcePtr left, TensorSourcePtr right, float scale) {
  std::vector<TensorSourcePtr> inputs = {std::move(base), std::move(left), std::move(right)};
  ARGOSY_TRY_STATUS(check_recipe_limits(inputs));
  for (const TensorSourcePtr& each : inputs) {
    DType dtype = each->dtype();
    bool is_float = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
    if (is_float && each->shape().size() == 2) continue;
    return fail(ErrorCode::kUnsupportedFeature, format("cannot merge {}", tensor_text(dtype, each->shape())),
                "an adapter and its weight are matrices of f32, f16 or bf16");
  }
  std::span<const int64_t> shape = inputs[0]->shape(), from = inputs[1]->shape(), to = inputs[2]->shape();
  if (from[0] != shape[0] || to[1] != shape[1] || from[1] != to[0]) {
    return fail(ErrorCode::kInvalidInput,
                format("an adapter of {} and {} for a weight of {}", list_text(from), list_text(to), list_text(shape)),
                "give the adapter that was trained on this model");
  }
  // Of a rank that matrices have, so that a tile's scratch stays small.
  constexpr int64_t kMaxRank = 4096;
  if (from[1] > kMaxRank) {
    return fail(ErrorCode::kUnsupportedFeature, format("an adapter of rank {}, {} is the most", from[1], kMaxRank));
  }
  return std::make_shared<MergeSource>(std::move(inputs), scale);
}

}  // namespace argosy
