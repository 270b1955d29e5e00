#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/finite.h"
#include "tensor/float_mode.h"
#include "tensor/quantize_source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

constexpr size_t kValues = 0, kScales = 1, kZeroPoints = 2, kMostOutputs = 3;
/// A quantizer of others is given at most so many at once, if a row has no more.
constexpr int64_t kValuesAtOnce = 1 << 20;

std::string_view text_of(QuantizeMethod method) {
  switch (method) {
    case QuantizeMethod::kFitted: return "fitted";
    case QuantizeMethod::kLargest: return "largest";
    case QuantizeMethod::kNearest: return "nearest";
    case QuantizeMethod::kWeighted: return "weighted";
    case QuantizeMethod::kNormal: return "normal";
  }
  return "";
}

class BlockGroup final : public SourceGroup {
 public:
  BlockGroup(TensorSourcePtr source, const BlockQuantization& how) : inputs_{std::move(source)}, how_(how) {
    std::span<const int64_t> shape = input().shape();
    width_ = shape.back();
    blocks_ = width_ / how.block + (width_ % how.block != 0 ? 1 : 0);
    row_dims_.assign(shape.begin(), shape.end() - 1);
    for (std::vector<int64_t>& each : shapes_) each = row_dims_;
    switch (how.form) {
      case QuantizedForm::kI8:
      case QuantizedForm::kNibbles: shapes_[kValues].push_back(width_); break;
      case QuantizedForm::kSwapped: shapes_[kValues].push_back(width_ / 2); break;
      case QuantizedForm::kBlocks:
        shapes_[kValues].push_back(blocks_);
        shapes_[kValues].push_back(how.block * how.method.bits / 8);
        break;
    }
    shapes_[kScales].push_back(blocks_);
    shapes_[kZeroPoints].push_back((blocks_ * how.method.bits + 7) / 8);
  }

  size_t size() const override { return how_.method.is_symmetric ? 2 : kMostOutputs; }
  DType dtype(size_t output) const override {
    if (output == kScales) return how_.method.scales;
    if (output == kZeroPoints) return DType::kU8;
    return how_.form == QuantizedForm::kI8        ? DType::kI8
           : how_.form == QuantizedForm::kNibbles ? DType::kU4
                                                  : DType::kU8;
  }
  std::span<const int64_t> shape(size_t output) const override { return shapes_[output]; }
  std::string recipe() const override {
    return format("quantize({}, {}{} bits={}, block={}, form={}, scales={})", input().recipe(),
                  how_.own ? quoted(how_.own->name()) : text_of(how_.method.method),
                  how_.method.is_symmetric ? "" : " with zero points", how_.method.bits, how_.block,
                  static_cast<int>(how_.form), to_text(how_.method.scales));
  }
  std::span<const TensorSourcePtr> inputs() const override { return inputs_; }

  int64_t rows() const override {
    int64_t count = 1;
    for (int64_t size : row_dims_) count *= size;
    return count;
  }

  Status stream_rows(int64_t first, int64_t count, std::span<const ByteSink> sinks,
                     std::span<std::byte> buffer) const override {
    ARGOSY_CHECK(sinks.size() == size(), format("{} sinks", sinks.size()));
    int64_t fits = 0, too_many = count + 1;
    while (too_many - fits > 1) {
      int64_t middle = fits + (too_many - fits) / 2;
      (footprint(middle) <= buffer.size() ? fits : too_many) = middle;
    }
    if (count > 0 && fits == 0) {
      return fail(ErrorCode::kInvalidInput,
                  format("a scratch of {} bytes is too small to stream {}", buffer.size(), quoted(recipe())),
                  format("give at least {} bytes of scratch", footprint(1)));
    }
    Box rows;
    for (int64_t done = 0; done < count;) {
      int64_t step = 1;
      rows = {};
      if (!row_dims_.empty()) step = contiguous_box(row_dims_, first + done, std::min(fits, count - done), rows);
      Scratch scratch(buffer);
      std::span<std::byte> parts[kMostOutputs];
      for (size_t i = 0; i < size(); ++i) parts[i] = scratch.take(static_cast<size_t>(step) * row_bytes(i));
      ARGOSY_TRY_STATUS(quantize(rows, step, parts, scratch));
      for (size_t i = 0; i < size(); ++i) ARGOSY_TRY_STATUS(sinks[i](parts[i]));
      done += step;
    }
    return {};
  }

  /// A row at a time, whole: who reads outputs alone and in pieces pays for it.
  size_t scratch_for(size_t /*output*/, int64_t /*elements*/) const override { return footprint(1); }

  Status read(size_t output, const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    if (out.empty()) return {};
    size_t rank = row_dims_.size();
    Box part, row;
    part.start.assign(box.start.begin() + static_cast<ptrdiff_t>(rank), box.start.end());
    part.extent.assign(box.extent.begin() + static_cast<ptrdiff_t>(rank), box.extent.end());
    std::span<const int64_t> rows = std::span(box.extent).first(rank), dims = std::span(shapes_[output]).subspan(rank);
    int64_t count = 1;
    for (int64_t size : rows) count *= size;
    std::byte* next = out.data();
    for (int64_t i = 0; i < count; ++i) {
      row = {};
      if (rank > 0) contiguous_box(rows, i, 1, row);
      for (size_t d = 0; d < rank; ++d) row.start[d] += box.start[d];
      size_t mark = scratch.mark();
      std::span<std::byte> parts[kMostOutputs];
      for (size_t k = 0; k < size(); ++k) parts[k] = scratch.take(row_bytes(k));
      ARGOSY_TRY_STATUS(quantize(row, 1, parts, scratch));
      BoxRuns runs(dims, part.start, part.extent);
      int64_t run = bytes_of(dtype(output), runs.run());
      for (BoxRuns::Strip strip; runs.next(strip);) {
        copy_runs(next, run, parts[output].data() + bytes_of(dtype(output), strip.offset),
                  bytes_of(dtype(output), strip.stride), run, strip.count);
        next += run * strip.count;
      }
      scratch.release(mark);
    }
    return {};
  }

 private:
  const TensorSource& input() const { return *inputs_.front(); }

  size_t row_bytes(size_t output) const {
    int64_t elements = 1;
    for (int64_t size : std::span(shapes_[output]).subspan(row_dims_.size())) elements *= size;
    return static_cast<size_t>(bytes_of(dtype(output), elements));
  }

  // What stream_rows() takes for so many rows.
  size_t footprint(int64_t rows) const {
    int64_t values, padded;
    if (__builtin_mul_overflow(rows, width_, &values) || __builtin_mul_overflow(rows, blocks_ * how_.block, &padded))
      return std::numeric_limits<size_t>::max();
    size_t total = saturating_add(scratch_cost(DType::kF32, padded), input().scratch_for(values));
    total = saturating_add(total, scratch_cost(input().dtype(), values));
    const auto at_once = static_cast<size_t>(rows_at_once(rows));
    total = saturating_add(total, Scratch::cost(at_once * static_cast<size_t>(blocks_ * how_.block)));
    total = saturating_add(total, Scratch::cost(at_once * static_cast<size_t>(blocks_) * (sizeof(float) + 1)));
    for (size_t i = 0; i < size(); ++i)
      total = saturating_add(total, Scratch::cost(static_cast<size_t>(rows) * row_bytes(i)));
    return total;
  }

  /// Of so many rows, those whose integers are made together.
  int64_t rows_at_once(int64_t rows) const {
    if (how_.own == nullptr) return 1;
    return std::clamp<int64_t>(kValuesAtOnce / std::max<int64_t>(blocks_ * how_.block, 1), 1,
                               std::max<int64_t>(rows, 1));
  }

  /// The rows as floats, each filled up with zeros to whole blocks.
  Result<const float*> floats_of(const Box& rows, int64_t count, Scratch& scratch) const {
    Box from = rows;
    from.start.push_back(0);
    from.extent.push_back(width_);
    DType type = input().dtype();
    int64_t padded = blocks_ * how_.block;
    auto floats = scratch.take(static_cast<size_t>(count * padded) * sizeof(float));
    auto values = floats;
    if (type == DType::kF32 && padded == width_) {
      ARGOSY_TRY_STATUS(input().read(from, floats, scratch));
      return reinterpret_cast<const float*>(floats.data());
    }
    auto raw = scratch.take(static_cast<size_t>(bytes_of(type, count * width_)));
    ARGOSY_TRY_STATUS(input().read(from, raw, scratch));
    if (padded == width_) {
      cast_elements(type, raw, DType::kF32, values);
      return reinterpret_cast<const float*>(floats.data());
    }
    auto raw_row = static_cast<size_t>(bytes_of(type, width_));
    auto row = static_cast<size_t>(padded) * sizeof(float), used = static_cast<size_t>(width_) * sizeof(float);
    for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
      auto to = floats.subspan(r * row, row), in = raw.subspan(r * raw_row, raw_row);
      if (type == DType::kF32) {
        std::ranges::copy(in, to.begin());
      } else {
        cast_elements(type, in, DType::kF32, to.first(used));
      }
      std::ranges::fill(to.subspan(used), std::byte{0});
    }
    return reinterpret_cast<const float*>(floats.data());
  }

  /// Integers, scales and zero points of some rows.
  struct Made {
    std::span<uint8_t> integers;
    std::span<float> scales;
    std::span<uint8_t> zeros;
  };

  // Quantises `count` whole rows, reading them once.
  Status quantize(const Box& rows, int64_t count, std::span<const std::span<std::byte>> parts, Scratch& scratch) const {
    size_t mark = scratch.mark();
    ARGOSY_TRY(const float* floats, floats_of(rows, count, scratch));
    const auto padded = static_cast<size_t>(blocks_ * how_.block), blocks = static_cast<size_t>(blocks_);
    const auto at_once = static_cast<size_t>(rows_at_once(count));
    auto integers = scratch.take(at_once * padded);
    auto about = scratch.take(at_once * blocks * (sizeof(float) + 1));
    Made made{{reinterpret_cast<uint8_t*>(integers.data()), at_once * padded},
              {reinterpret_cast<float*>(about.data()), at_once * blocks},
              {reinterpret_cast<uint8_t*>(about.data() + at_once * blocks * sizeof(float)), at_once * blocks}};
    DefaultFloatMode mode;
    for (size_t first = 0; first < static_cast<size_t>(count); first += at_once) {
      const size_t some = std::min(at_once, static_cast<size_t>(count) - first);
      std::span<const float> values(floats + first * padded, some * padded);
      ARGOSY_TRY_STATUS(how_.own ? quantize_by_other(rows, first, some, values, made)
                                 : quantize_row(rows, first, values, made));
      for (size_t r = 0; r < some; ++r) {
        ARGOSY_TRY_STATUS(store_row(rows, first + r,
                                    {made.integers.subspan(r * padded, padded), made.scales.subspan(r * blocks, blocks),
                                     made.zeros.subspan(r * blocks, blocks)},
                                    parts));
      }
    }
    scratch.release(mark);
    return {};
  }

  Status quantize_row(const Box& rows, size_t row, std::span<const float> values, const Made& made) const {
    const auto block = static_cast<size_t>(how_.block);
    for (size_t b = 0; b < static_cast<size_t>(blocks_); ++b) {
      BlockScale found =
          quantize_block(values.subspan(b * block, block), how_.method, made.integers.subspan(b * block, block));
      if (std::isnan(found.scale)) return not_finite(rows, static_cast<int64_t>(row), static_cast<int64_t>(b));
      made.scales[b] = found.scale;
      made.zeros[b] = found.zero;
    }
    // ONNX Runtime's quantizer leaves these bytes alone, so that they differ between its methods.
    if (how_.method.method == QuantizeMethod::kLargest)
      std::ranges::fill(made.integers.subspan(static_cast<size_t>(width_)), uint8_t{0});
    return {};
  }

  /// `count` rows from `first` on. What comes back is what somebody else's code says.
  Status quantize_by_other(const Box& rows, size_t first, size_t count, std::span<const float> values,
                           const Made& made) const {
    const auto block = static_cast<size_t>(how_.block), blocks = static_cast<size_t>(blocks_), padded = block * blocks;
    auto row_of = [&](size_t b) { return static_cast<int64_t>(first + b / blocks); };
    auto block_of = [&](size_t b) { return static_cast<int64_t>(b % blocks); };
    for (size_t b = 0; b < count * blocks; ++b) {
      auto finite = [](float value) { return std::isfinite(value); };
      if (!std::ranges::all_of(values.subspan(b * block, block), finite))
        return not_finite(rows, row_of(b), block_of(b));
    }
    RowsToQuantize given{static_cast<int64_t>(count),
                         blocks_,
                         how_.block,
                         values,
                         made.integers.first(count * padded),
                         made.scales.first(count * blocks),
                         made.zeros.first(how_.method.is_symmetric ? 0 : count * blocks)};
    ARGOSY_TRY_STATUS(how_.own->quantize(given));
    const int most = (1 << how_.method.bits) - 1;
    for (size_t b = 0; b < count * blocks; ++b) {
      auto refuse = [&](std::string what) { return no_such(rows, row_of(b), block_of(b), std::move(what)); };
      if (!std::isfinite(given.scales[b])) return refuse(format("the scale {}", given.scales[b]));
      if (uint8_t largest = std::ranges::max(given.integers.subspan(b * block, block)); largest > most)
        return refuse(format("the integer {}, of {} bits", int{largest}, how_.method.bits));
      if (!how_.method.is_symmetric && given.zero_points[b] > most)
        return refuse(format("the zero point {}, of {} bits", int{given.zero_points[b]}, how_.method.bits));
    }
    // What stands for the filling is nobody's business.
    for (size_t r = 0; r < count; ++r)
      std::ranges::fill(made.integers.subspan(r * padded, padded).subspan(static_cast<size_t>(width_)), uint8_t{0});
    return {};
  }

  Status store_row(const Box& rows, size_t row, const Made& made, std::span<const std::span<std::byte>> parts) const {
    auto part = [&](size_t output) { return parts[output].subspan(row * row_bytes(output), row_bytes(output)); };
    pack(std::as_bytes(made.integers), part(kValues));
    auto found = std::as_bytes(made.scales);
    if (how_.method.scales == DType::kF32) {
      std::ranges::copy(found, part(kScales).begin());
    } else {
      cast_elements(DType::kF32, found, how_.method.scales, part(kScales));
      if (how_.own && has_non_finite(how_.method.scales, part(kScales))) {
        const auto largest = std::ranges::max_element(made.scales, {}, [](float scale) { return std::fabs(scale); });
        return no_such(rows, static_cast<int64_t>(row), largest - made.scales.begin(),
                       format("the scale {}, too large for {}", *largest, to_text(how_.method.scales)));
      }
    }
    if (!how_.method.is_symmetric) pack_zero_points(std::as_bytes(made.zeros), part(kZeroPoints));
    return {};
  }

  /// Where a block is in the tensor: "[3, 32]".
  std::string place_of(const Box& rows, int64_t row, int64_t block) const {
    std::vector<int64_t> at;
    if (!row_dims_.empty()) {
      Box one;
      contiguous_box(rows.extent, row, 1, one);
      for (size_t d = 0; d < one.start.size(); ++d) at.push_back(rows.start[d] + one.start[d]);
    }
    at.push_back(block * how_.block);
    return list_text(at);
  }

  Status not_finite(const Box& rows, int64_t row, int64_t block) const {
    return fail(
        ErrorCode::kInvalidInput,
        format("a NaN or an infinity in the block at {} of {}", place_of(rows, row, block), quoted(input().recipe())),
        "leave this tensor out of quantisation, or repair the checkpoint");
  }

  Status no_such(const Box& rows, int64_t row, int64_t block, std::string what) const {
    return fail(ErrorCode::kInvalidInput,
                format("the scheme {} gives {}, for the block at {} of {}", how_.own->name(), what,
                       place_of(rows, row, block), quoted(input().recipe())),
                "correct the scheme, or use int4 or int8");
  }

  void pack(std::span<const std::byte> integers, std::span<std::byte> out) const {
    if (how_.form == QuantizedForm::kI8) {
      for (size_t i = 0; i < out.size(); ++i) out[i] = integers[i] ^ std::byte{0x80};
    } else if (how_.method.bits == 8) {
      std::ranges::copy(integers, out.begin());
    } else {
      bool is_swapped = how_.form == QuantizedForm::kSwapped;
      for (size_t i = 0; i < out.size(); ++i) {
        std::byte a = integers[2 * i], b = integers[2 * i + 1];
        out[i] = is_swapped ? a << 4 | b : b << 4 | a;
      }
    }
  }

  /// One that is missing to fill a byte is the one of a block of zeros.
  void pack_zero_points(std::span<const std::byte> zeros, std::span<std::byte> out) const {
    if (how_.method.bits == 8) {
      std::ranges::copy(zeros, out.begin());
      return;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      std::byte second = 2 * i + 1 < zeros.size() ? zeros[2 * i + 1] : std::byte{8};
      out[i] = second << 4 | zeros[2 * i];
    }
  }

  std::vector<TensorSourcePtr> inputs_;
  BlockQuantization how_;
  int64_t width_ = 0, blocks_ = 0;  // of a row
  std::vector<int64_t> row_dims_;   // all dims but the last
  std::vector<int64_t> shapes_[kMostOutputs];
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

/// What the arithmetic and the form ask of a block.
Status check_block(const TensorSource& source, const BlockQuantization& how) {
  auto refuse = [&](std::string why) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot quantise {} in blocks of {}", tensor_text(source.dtype(), source.shape()), how.block),
                std::move(why));
  };
  if (source.shape().empty()) return refuse("quantisation needs a last dim to divide");
  if (how.block <= 0) return refuse("give a block of at least 8");
  if (how.form == QuantizedForm::kBlocks || how.method.method != QuantizeMethod::kFitted) {
    if (how.block % 8 != 0) return refuse("blocks are a multiple of 8 values");
  }
  if (how.method.method == QuantizeMethod::kWeighted && how.block > 256)
    return refuse("blocks have at most 256 values");
  if (how.method.method == QuantizeMethod::kNormal && how.form != QuantizedForm::kSwapped)
    return refuse("integers that name floats are stored with the first of two in the high half");
  if (how.form == QuantizedForm::kBlocks) return {};
  if (source.shape().back() % how.block != 0) return refuse("the last dim has to be a multiple of the block");
  if (how.form != QuantizedForm::kI8 && source.shape().back() % 2 != 0) return refuse("two values share a byte");
  return {};
}

}  // namespace

TensorSourcePtr group_output(SourceGroupPtr group, size_t index) {
  ARGOSY_CHECK(group != nullptr && index < group->size(), format("output {} of a group", index));
  return std::make_shared<GroupOutput>(std::move(group), index);
}

Status SourceGroup::stream_to(std::span<const ByteSink> sinks, size_t scratch_bytes) const {
  auto memory = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes);
  return stream_rows(0, rows(), sinks, {memory.get(), scratch_bytes});
}

Result<SourceGroupPtr> quantized_blocks(TensorSourcePtr source, const BlockQuantization& how) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  DType type = source->dtype();
  auto is_short = [](DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; };
  if (type != DType::kF32 && !is_short(type)) {
    return fail(ErrorCode::kUnsupportedFeature, format("cannot quantise {}", tensor_text(type, source->shape())),
                "quantisation takes f32, f16 and bf16");
  }
  if (how.method.scales != DType::kF32 && !is_short(how.method.scales)) {
    return fail(ErrorCode::kUnsupportedFeature, format("scales of {}", to_text(how.method.scales)),
                "scales are f32, f16 or bf16");
  }
  BlockQuantization used = how;
  if (how.own != nullptr) {
    ARGOSY_CHECK(how.form == QuantizedForm::kBlocks, "a quantizer of others, and another form than blocks");
    ARGOSY_CHECK(how.own->bits() == 4 || how.own->bits() == 8, format("{} bits", how.own->bits()));
    used.method = {QuantizeMethod::kNearest, how.own->bits(), !how.own->has_zero_points(), how.method.scales};
  }
  ARGOSY_TRY_STATUS(check_block(*source, used));
  if (used.method.method == QuantizeMethod::kFitted || used.method.method == QuantizeMethod::kNormal)
    used.method.is_symmetric = true;
  if (used.method.method == QuantizeMethod::kWeighted) used.method.is_symmetric = false;
  return std::make_shared<BlockGroup>(std::move(source), used);
}

}  // namespace argosy
