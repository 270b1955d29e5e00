#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/float_mode.h"
#include "tensor/quantize.h"
#include "tensor/quantize_source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

constexpr size_t kValues = 0;

class FittedGroup final : public SourceGroup {
 public:
  FittedGroup(TensorSourcePtr source, int64_t block, QuantizedForm form, DType scales)
      : inputs_{std::move(source)}, block_(block), form_(form), scale_type_(scales) {
    std::span<const int64_t> shape = input().shape();
    last_ = shape.back();
    values_shape_.assign(shape.begin(), shape.end());
    scales_shape_ = values_shape_;
    scales_shape_.back() = last_ / block_;
    if (form == QuantizedForm::kSwapped) values_shape_.back() = last_ / 2;
  }

  size_t size() const override { return 2; }
  DType dtype(size_t output) const override {
    if (output != kValues) return scale_type_;
    return form_ == QuantizedForm::kI8 ? DType::kI8 : form_ == QuantizedForm::kNibbles ? DType::kU4 : DType::kU8;
  }
  std::span<const int64_t> shape(size_t output) const override {
    return output == kValues ? values_shape_ : scales_shape_;
  }
  std::string recipe() const override {
    return format("quantize_fitted({}, block={}, form={}, scales={})", input().recipe(), block_,
                  static_cast<int>(form_), to_text(scale_type_));
  }
  std::span<const TensorSourcePtr> inputs() const override { return inputs_; }

  Status stream_to(std::span<const ByteSink> sinks, size_t scratch_bytes) const override {
    ARGOSY_CHECK(sinks.size() == 2, format("{} sinks", sinks.size()));
    for (size_t i = 0; i < 2; ++i) ARGOSY_TRY_STATUS(group_output_stream(i, sinks[i], scratch_bytes));
    return {};
  }

  size_t scratch_for(size_t output, int64_t elements) const override {
    int64_t per = output == kValues ? (form_ == QuantizedForm::kSwapped ? 2 : 1) : block_;
    int64_t values;
    if (__builtin_mul_overflow(elements, per, &values) || values > std::numeric_limits<int64_t>::max() / 16) {
      return std::numeric_limits<size_t>::max();
    }
    // A part of a row is widened to blocks.
    values += 2 * block_;
    size_t size = saturating_add(scratch_cost(DType::kF32, values), input().scratch_for(values));
    if (input().dtype() != DType::kF32) size = saturating_add(size, scratch_cost(input().dtype(), values));
    // The integers of all, a byte each.
    return saturating_add(size, Scratch::cost(static_cast<size_t>(values)));
  }

  Status read(size_t output, const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    if (out.empty()) return {};
    int64_t per = output == kValues ? (form_ == QuantizedForm::kSwapped ? 2 : 1) : block_;
    // In elements of the input, what the box covers of a row.
    int64_t first = box.start.back() * per, end = (box.start.back() + box.extent.back()) * per;
    Box wide = box;
    wide.start.back() = first / block_ * block_;
    wide.extent.back() = (end + block_ - 1) / block_ * block_ - wide.start.back();
    int64_t width = wide.extent.back(), rows = box_elements(wide) / width;
    if (width == end - first) return read_rows(output, wide, rows, out, scratch);
    // Rows one by one, so that no more than one is widened.
    size_t row_bytes = out.size() / static_cast<size_t>(rows);
    std::span<const int64_t> row_dims = std::span(box.extent).first(box.extent.size() - 1);
    Box part;
    for (int64_t row = 0; row < rows; ++row) {
      contiguous_box(row_dims, row, 1, part);
      for (size_t d = 0; d < row_dims.size(); ++d) {
        wide.start[d] = box.start[d] + part.start[d];
        wide.extent[d] = 1;
      }
      size_t mark = scratch.mark();
      auto values = scratch.take(static_cast<size_t>(width));
      ARGOSY_TRY_STATUS(quantize(wide, 1, values, {}, scratch));
      pack(values.subspan(static_cast<size_t>(first - wide.start.back()), static_cast<size_t>(end - first)),
           out.subspan(static_cast<size_t>(row) * row_bytes, row_bytes));
      scratch.release(mark);
    }
    return {};
  }

 private:
  const TensorSource& input() const { return *inputs_.front(); }
  int bits() const { return form_ == QuantizedForm::kI8 ? 8 : 4; }

  Status group_output_stream(size_t output, const ByteSink& sink, size_t scratch_bytes) const {
    // Blocks of rows of this output alone.
    struct View final : TensorSource {
      const FittedGroup* group;
      size_t output;
      DType dtype() const override { return group->dtype(output); }
      std::span<const int64_t> shape() const override { return group->shape(output); }
      std::string recipe() const override { return group->recipe(); }
      Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
        return group->read(output, box, out, scratch);
      }
      size_t scratch_for(int64_t elements) const override { return group->scratch_for(output, elements); }
    } view;
    view.group = this;
    view.output = output;
    return view.TensorSource::stream_to(sink, scratch_bytes);
  }

  Status read_rows(size_t output, const Box& wide, int64_t rows, std::span<std::byte> out, Scratch& scratch) const {
    if (output != kValues && take_known(wide, rows, out)) return {};
    size_t mark = scratch.mark();
    auto values = scratch.take(static_cast<size_t>(rows * wide.extent.back()));
    std::vector<float> scales(static_cast<size_t>(rows * wide.extent.back() / block_));
    ARGOSY_TRY_STATUS(quantize(wide, rows, values, scales, scratch));
    if (output == kValues) {
      pack(values, out);
      keep_known(wide, rows, scales);
    } else {
      store(scales, out);
      forget();
    }
    scratch.release(mark);
    return {};
  }

  void store(std::span<const float> scales, std::span<std::byte> out) const {
    auto bytes = std::as_bytes(scales);
    if (scale_type_ == DType::kF32) {
      std::ranges::copy(bytes, out.begin());
    } else {
      cast_elements(DType::kF32, bytes, scale_type_, out);
    }
  }

  // Whoever writes a file reads the integers, then the scales. These are found together, so they are kept from the one
  // reading to the other, and forgotten when all of them have been read.
  bool is_matrix() const { return scales_shape_.size() == 2; }

  void keep_known(const Box& wide, int64_t rows, std::span<const float> scales) const {
    if (!is_matrix()) return;
    std::lock_guard lock(mutex_);
    if (is_forgotten_) return;
    if (known_.empty()) known_.assign(static_cast<size_t>(scales_shape_[0] * scales_shape_[1]), std::nanf(""));
    for_each_row(wide, rows, [&](size_t at, size_t first, size_t count) {
      std::ranges::copy(scales.subspan(at, count), known_.begin() + static_cast<ptrdiff_t>(first));
    });
  }

  bool take_known(const Box& wide, int64_t rows, std::span<std::byte> out) const {
    if (!is_matrix()) return false;
    std::vector<float> scales(static_cast<size_t>(rows * wide.extent.back() / block_));
    {
      std::lock_guard lock(mutex_);
      if (known_.empty()) return false;
      bool is_known = true;
      for_each_row(wide, rows, [&](size_t at, size_t first, size_t count) {
        for (size_t i = 0; i < count; ++i) {
          scales[at + i] = known_[first + i];
          is_known = is_known && !std::isnan(scales[at + i]);
        }
      });
      if (!is_known) return false;
      taken_count_ += scales.size();
      if (taken_count_ >= known_.size()) {
        known_ = std::vector<float>();  // {} would keep the memory
        taken_count_ = 0;
      }
    }
    store(scales, out);
    return true;
  }

  // Somebody wanted scales that were not known: what others leave here would perhaps never be read.
  void forget() const {
    std::lock_guard lock(mutex_);
    known_ = std::vector<float>();  // {} would keep the memory
    is_forgotten_ = true;
  }

  // Scales of a row of the box: where they are among those of the box, and among all.
  template <class Visit>
  void for_each_row(const Box& wide, int64_t rows, Visit visit) const {
    auto count = static_cast<size_t>(wide.extent[1] / block_);
    for (int64_t row = 0; row < rows; ++row) {
      auto first = static_cast<size_t>((wide.start[0] + row) * scales_shape_[1] + wide.start[1] / block_);
      visit(static_cast<size_t>(row) * count, first, count);
    }
  }

  void pack(std::span<const std::byte> values, std::span<std::byte> out) const {
    if (form_ == QuantizedForm::kI8) {
      std::ranges::copy(values, out.begin());
      return;
    }
    const auto* from = reinterpret_cast<const uint8_t*>(values.data());
    auto* to = reinterpret_cast<uint8_t*>(out.data());
    // The integers lie in [-8, 7], so that adding 8 to the low four bits flips the highest of them.
    bool is_swapped = form_ == QuantizedForm::kSwapped;
    for (size_t i = 0; i < out.size(); ++i) {
      auto a = static_cast<uint8_t>((from[2 * i] ^ 8) & 15), b = static_cast<uint8_t>((from[2 * i + 1] ^ 8) & 15);
      to[i] = static_cast<uint8_t>(is_swapped ? a << 4 | b : b << 4 | a);
    }
  }

  // Quantises whole blocks, reading the box once: integers as bytes, and scales unless there is no room for them.
  Status quantize(const Box& from, int64_t rows, std::span<std::byte> values, std::span<float> scales,
                  Scratch& scratch) const {
    size_t mark = scratch.mark();
    DType type = input().dtype();
    int64_t row = from.extent.back();
    auto floats = scratch.take(static_cast<size_t>(rows * row) * sizeof(float));
    if (type == DType::kF32) {
      ARGOSY_TRY_STATUS(input().read(from, floats, scratch));
    } else {
      auto raw = scratch.take(static_cast<size_t>(bytes_of(type, rows * row)));
      ARGOSY_TRY_STATUS(input().read(from, raw, scratch));
      cast_elements(type, raw, DType::kF32, floats);
    }
    DefaultFloatMode mode;
    const auto* in = reinterpret_cast<const float*>(floats.data());
    auto* out = reinterpret_cast<int8_t*>(values.data());
    auto block = static_cast<size_t>(block_);
    for (size_t i = 0, count = static_cast<size_t>(rows * row) / block; i < count; ++i) {
      float scale = quantize_block_fitted({in + i * block, block}, bits(), {out + i * block, block});
      if (std::isnan(scale)) {
        return fail(ErrorCode::kInvalidInput, format("a NaN or an infinity in {}", quoted(input().recipe())),
                    "leave this tensor out of quantisation, or repair the checkpoint");
      }
      if (!scales.empty()) scales[i] = scale;
    }
    scratch.release(mark);
    return {};
  }

  std::vector<TensorSourcePtr> inputs_;
  int64_t block_;
  QuantizedForm form_;
  DType scale_type_;
  int64_t last_ = 0;  // size of the last dim
  std::vector<int64_t> values_shape_, scales_shape_;
  mutable std::mutex mutex_;
  mutable std::vector<float> known_;  // scales by index, NaN: not known
  mutable bool is_forgotten_ = false;
  mutable size_t taken_count_ = 0;  // of those: how many were read
};

}  // namespace

Result<SourceGroupPtr> quantized_fitted(TensorSourcePtr source, int64_t block, QuantizedForm form, DType scales) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  DType type = source->dtype();
  if (type != DType::kF32 && type != DType::kF16 && type != DType::kBF16) {
    return fail(ErrorCode::kUnsupportedFeature, format("cannot quantise {}", tensor_text(type, source->shape())),
                "quantisation takes f32, f16 and bf16");
  }
  if (scales != DType::kF32 && scales != DType::kBF16) {
    return fail(ErrorCode::kUnsupportedFeature, format("scales of {}", to_text(scales)), "scales are f32 or bf16");
  }
  bool has_pairs = form != QuantizedForm::kI8;
  if (source->shape().empty() || block <= 0 || source->shape().back() % block != 0 ||
      (has_pairs && source->shape().back() % 2 != 0)) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot quantise {} in blocks of {}", tensor_text(type, source->shape()), block),
                "the last dim has to be a multiple of the block");
  }
  return std::make_shared<FittedGroup>(std::move(source), block, form, scales);
}

}  // namespace argosy
