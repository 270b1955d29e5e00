#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/float_mode.h"
#include "tensor/quantize.h"
#include "tensor/source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

constexpr size_t kWeight = 0;
constexpr size_t kScales = 1;

class Int8Group final : public SourceGroup {
 public:
  Int8Group(TensorSourcePtr source, int64_t block)
      : inputs_{std::move(source)}, block_(block), scales_shape_(input().shape().begin(), input().shape().end()) {
    last_ = scales_shape_.back();
    scales_shape_.back() = last_ / block_ + (last_ % block_ != 0 ? 1 : 0);
    width_ = std::min(block_, last_);
  }

  size_t size() const override { return 2; }
  DType dtype(size_t output) const override { return output == kWeight ? DType::kI8 : DType::kF32; }
  std::span<const int64_t> shape(size_t output) const override {
    return output == kWeight ? input().shape() : std::span<const int64_t>(scales_shape_);
  }
  std::string recipe() const override { return format("quantize_int8({}, block={})", input().recipe(), block_); }
  std::span<const TensorSourcePtr> inputs() const override { return inputs_; }

  Status stream_to(std::span<const ByteSink> sinks, size_t scratch_bytes) const override {
    ARGOSY_CHECK(sinks.size() == 2, format("{} sinks", sinks.size()));
    int64_t total = 1;
    for (int64_t dim : scales_shape_) total *= dim;
    if (total == 0) return {};
    // Boxes of scales: whole rows where they fit, else some blocks of a row.
    int64_t fits = 0, too_many = total + 1;
    while (too_many - fits > 1) {
      int64_t middle = fits + (too_many - fits) / 2;
      (footprint(middle) <= scratch_bytes ? fits : too_many) = middle;
    }
    if (fits == 0) {
      return fail(ErrorCode::kInvalidInput,
                  format("a scratch of {} bytes is too small to stream {}", scratch_bytes, quoted(recipe())),
                  format("give at least {} bytes of scratch", footprint(1)));
    }
    size_t size = footprint(fits);
    auto memory = std::make_unique_for_overwrite<std::byte[]>(size);
    Box box;
    for (int64_t done = 0; done < total;) {
      int64_t step = contiguous_box(scales_shape_, done, std::min(fits, total - done), box);
      Box from = input_box(box);
      Scratch scratch({memory.get(), size});
      auto weight = scratch.take(static_cast<size_t>(box_elements(from)));
      auto scales = scratch.take(static_cast<size_t>(step) * sizeof(float));
      ARGOSY_TRY_STATUS(quantize(from, weight, scales, scratch));
      ARGOSY_TRY_STATUS(sinks[kWeight](weight));
      ARGOSY_TRY_STATUS(sinks[kScales](scales));
      done += step;
    }
    return {};
  }

  size_t scratch_for(size_t output, int64_t elements) const override {
    if (output == kScales) {
      int64_t values = inputs_of_blocks(elements);
      return saturating_add(Scratch::cost(static_cast<size_t>(values)), quantize_scratch(values));
    }
    // At least one row, widened on both sides to whole blocks.
    int64_t values = std::min(elements, std::numeric_limits<int64_t>::max() / 4) + 2 * (width_ - 1);
    size_t results = saturating_add(Scratch::cost(static_cast<size_t>(values)),
                                    Scratch::cost(static_cast<size_t>(values) * sizeof(float)));
    return saturating_add(results, quantize_scratch(values));
  }

  Status read(size_t output, const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    if (out.empty()) return {};
    if (output == kScales) {
      Box from = input_box(box);
      size_t mark = scratch.mark();
      auto weight = scratch.take(static_cast<size_t>(box_elements(from)));
      ARGOSY_TRY_STATUS(quantize(from, weight, out, scratch));
      scratch.release(mark);
      return {};
    }
    return read_weight(box, out, scratch);
  }

 private:
  const TensorSource& input() const { return *inputs_.front(); }

  // The input of a box of scales: its blocks, the last of a row perhaps cut short.
  Box input_box(const Box& scales) const {
    Box from = scales;
    from.start.back() = scales.start.back() * block_;
    int64_t end_block = scales.start.back() + scales.extent.back();
    int64_t end = end_block == scales_shape_.back() ? last_ : end_block * block_;
    from.extent.back() = end - from.start.back();
    return from;
  }

  int64_t inputs_of_blocks(int64_t blocks) const {
    int64_t values;
    return __builtin_mul_overflow(blocks, width_, &values) ? std::numeric_limits<int64_t>::max() / 4 : values;
  }

  // What quantize() takes for so many input elements, beyond its outputs.
  size_t quantize_scratch(int64_t values) const {
    size_t size = saturating_add(scratch_cost(DType::kF32, values), input().scratch_for(values));
    return input().dtype() == DType::kF32 ? size : saturating_add(size, scratch_cost(input().dtype(), values));
  }

  size_t footprint(int64_t blocks) const {
    int64_t values = inputs_of_blocks(blocks);
    size_t outputs = saturating_add(Scratch::cost(static_cast<size_t>(values)), scratch_cost(DType::kF32, blocks));
    return saturating_add(outputs, quantize_scratch(values));
  }

  // Quantises a box of the input that is whole blocks along the last dim, reading it once.
  Status quantize(const Box& from, std::span<std::byte> weight, std::span<std::byte> scales, Scratch& scratch) const {
    size_t mark = scratch.mark();
    DType type = input().dtype();
    int64_t row = from.extent.back(), rows = box_elements(from) / row;
    auto floats = scratch.take(static_cast<size_t>(rows * row) * sizeof(float));
    if (type == DType::kF32) {
      ARGOSY_TRY_STATUS(input().read(from, floats, scratch));
    } else {
      auto values = scratch.take(static_cast<size_t>(bytes_of(type, rows * row)));
      ARGOSY_TRY_STATUS(input().read(from, values, scratch));
      cast_elements(type, values, DType::kF32, floats);
    }
    DefaultFloatMode mode;
    std::byte* next_scale = scales.data();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t begin = 0; begin < row; begin += block_) {
        auto count = static_cast<size_t>(std::min(block_, row - begin));
        auto first = static_cast<size_t>(r * row + begin);
        float scale = quantize_block_int8({reinterpret_cast<const float*>(floats.data()) + first, count},
                                          {reinterpret_cast<int8_t*>(weight.data()) + first, count});
        if (std::isnan(scale)) {
          return fail(ErrorCode::kInvalidInput,
                      format("a NaN or an infinity in the block at {} of {}", list_text(position(from, r, begin)),
                             quoted(input().recipe())),
                      "leave this tensor out of quantisation, or repair the checkpoint");
        }
        std::memcpy(next_scale, &scale, sizeof(scale));
        next_scale += sizeof(scale);
      }
    }
    scratch.release(mark);
    return {};
  }

  static std::vector<int64_t> position(const Box& box, int64_t row, int64_t column) {
    std::vector<int64_t> result = box.start;
    result.back() += column;
    for (size_t d = result.size() - 1; d-- > 0;) {
      result[d] += row % box.extent[d];
      row /= box.extent[d];
    }
    return result;
  }

  // Widens the box to whole blocks and takes as many of its rows at a time as fit into what scratch_for() promised.
  Status read_weight(const Box& box, std::span<std::byte> out, Scratch& scratch) const {
    int64_t first = box.start.back(), width = box.extent.back();
    Box scales = box;
    scales.start.back() = first / block_;
    scales.extent.back() = (first + width - 1) / block_ + 1 - scales.start.back();
    Box wide = input_box(scales);
    int64_t wide_width = wide.extent.back(), skipped = first - wide.start.back();
    int64_t rows = box_elements(box) / width;
    int64_t most_rows = std::max<int64_t>(1, (rows * width + 2 * (width_ - 1)) / wide_width);
    // Rows of the box, counted in its own dims without the last, are taken in contiguous ranges of these.
    std::span<const int64_t> row_dims = std::span(box.extent).first(box.extent.size() - 1);
    Box part;
    std::byte* next = out.data();
    for (int64_t done = 0; done < rows;) {
      int64_t step = contiguous_box(row_dims, done, std::min(most_rows, rows - done), part);
      for (size_t d = 0; d < row_dims.size(); ++d) {
        wide.start[d] = box.start[d] + part.start[d];
        wide.extent[d] = part.extent[d];
      }
      size_t mark = scratch.mark();
      auto weight = scratch.take(static_cast<size_t>(step * wide_width));
      auto unused = scratch.take(static_cast<size_t>(step * scales.extent.back()) * sizeof(float));
      ARGOSY_TRY_STATUS(quantize(wide, weight, unused, scratch));
      copy_runs(next, width, weight.data() + skipped, wide_width, width, step);
      scratch.release(mark);
      next += step * width;
      done += step;
    }
    return {};
  }

  std::vector<TensorSourcePtr> inputs_;
  int64_t block_;
  int64_t last_;   // size of the last dim
  int64_t width_;  // of the widest block
  std::vector<int64_t> scales_shape_;
};

class GroupOutput final : public DerivedSource {
 public:
  GroupOutput(SourceGroupPtr group, size_t index)
      : DerivedSource(SourceKind::kGroupOutput, group->dtype(index),
                      {group->shape(index).begin(), group->shape(index).end()},
                      {group->inputs().begin(), group->inputs().end()}),
        group_(std::move(group)),
        index_(index) {}

  std::string recipe() const override { return format("{}[{}]", group_->recipe(), index_); }
  size_t scratch_for(int64_t elements) const override { return group_->scratch_for(index_, elements); }
  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    return group_->read(index_, box, out, scratch);
  }
  SourceGroupPtr group() const override { return group_; }
  size_t group_index() const override { return index_; }

 private:
  SourceGroupPtr group_;
  size_t index_;
};

}  // namespace

TensorSourcePtr group_output(SourceGroupPtr group, size_t index) {
  ARGOSY_CHECK(group != nullptr && index < group->size(), format("output {} of a group", index));
  return std::make_shared<GroupOutput>(std::move(group), index);
}

Result<SourceGroupPtr> quantized_int8(TensorSourcePtr source, int64_t block) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  DType type = source->dtype();
  if (type != DType::kF32 && type != DType::kF16 && type != DType::kBF16) {
    return fail(ErrorCode::kUnsupportedFeature, format("cannot quantise {}", tensor_text(type, source->shape())),
                "quantisation takes f32, f16 and bf16");
  }
  if (source->shape().empty()) {
    return fail(ErrorCode::kInvalidInput, "cannot quantise a scalar", "quantisation needs a last dim to divide");
  }
  if (block <= 0) {
    return fail(ErrorCode::kInvalidInput, format("quantisation in blocks of {}", block), "give a block of at least 1");
  }
  return std::make_shared<Int8Group>(std::move(source), block);
}

}  // namespace argosy
