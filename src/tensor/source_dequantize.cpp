#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/dequantize.h"
#include "tensor/float_mode.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// Elements that are computed at a time: small enough for the caches if values are read as they lie in a file, more
// where reading them rearranges, which costs less in larger pieces.
constexpr int64_t kPlainTile = int64_t{1} << 17;
constexpr int64_t kRearrangedTile = int64_t{1} << 20;

// Largest integer that f32 holds with all below it: beyond it zero points would be rounded.
constexpr int64_t kMaxZeroPoint = int64_t{1} << 24;

using DequantizeLanes = float __attribute__((vector_size(32)));
constexpr int64_t kDequantizeLanes = 8;

// values[i] = (values[i] - zero) * scale
__attribute__((noinline)) void scale_run(float* values, int64_t count, float scale, float zero) {
  int64_t i = 0;
  for (; i + kDequantizeLanes <= count; i += kDequantizeLanes) {
    DequantizeLanes lanes;
    std::memcpy(&lanes, values + i, sizeof(lanes));
    lanes = (lanes - zero) * scale;
    std::memcpy(values + i, &lanes, sizeof(lanes));
  }
  for (; i < count; ++i) values[i] = (values[i] - zero) * scale;
}

// The same with a scale and, if not null, a zero point for each.
__attribute__((noinline)) void scale_each(float* values, int64_t count, const float* scales, const float* zeros,
                                          float zero) {
  int64_t i = 0;
  for (; i + kDequantizeLanes <= count; i += kDequantizeLanes) {
    DequantizeLanes lanes, factor, shift = DequantizeLanes{} + zero;
    std::memcpy(&lanes, values + i, sizeof(lanes));
    std::memcpy(&factor, scales + i, sizeof(factor));
    if (zeros != nullptr) std::memcpy(&shift, zeros + i, sizeof(shift));
    lanes = (lanes - shift) * factor;
    std::memcpy(values + i, &lanes, sizeof(lanes));
  }
  for (; i < count; ++i) values[i] = (values[i] - (zeros != nullptr ? zeros[i] : zero)) * scales[i];
}

class DequantizeSource final : public DerivedSource {
 public:
  DequantizeSource(std::vector<TensorSourcePtr> inputs, Dequantization how)
      : DerivedSource(SourceKind::kComputed, how.dtype, {inputs[0]->shape().begin(), inputs[0]->shape().end()}, inputs),
        how_(std::move(how)),
        tile_(input().depth() == 0 ? kPlainTile : kRearrangedTile) {}

  std::string recipe() const override {
    std::vector<std::string> parts;
    for (const TensorSourcePtr& part : inputs()) parts.push_back(part->recipe());
    return format("dequantize({}, block={}, zero={}, modulus={}, {})", join(parts, ", "), list_text(how_.block),
                  how_.zero, how_.zero_modulus, to_text(dtype()));
  }

  size_t scratch_for(int64_t elements) const override {
    int64_t count = std::min(elements, tile_);
    size_t scales = 0, reading = scratch_to_read(input(), count);
    for (size_t i = 1; i < inputs().size(); ++i) {  // of which there are no more than values
      scales = saturating_add(scales, scratch_cost(DType::kF32, count));
      reading = std::max(reading, saturating_add(scales, scratch_to_read(*inputs()[i], count)));
    }
    return saturating_add(scratch_cost(DType::kF32, count), reading);
  }

  const Dequantization& how() const { return how_; }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    return for_each_part(box, tile_, [&](const Box& tile, int64_t step) -> Status {
      size_t mark = scratch.mark();
      auto bytes = static_cast<size_t>(bytes_of(dtype(), step));
      ARGOSY_TRY_STATUS(read_tile(tile, out.first(bytes), scratch));
      scratch.release(mark);
      out = out.subspan(bytes);
      return {};
    });
  }

 private:
  static size_t scratch_to_read(const TensorSource& source, int64_t elements) {
    size_t own = source.dtype() == DType::kF32 ? 0 : scratch_cost(source.dtype(), elements);
    return saturating_add(own, source.scratch_for(elements));
  }

  static Status read_floats(const TensorSource& source, const Box& box, std::span<std::byte> floats, Scratch& scratch) {
    if (source.dtype() == DType::kF32) return source.read(box, floats, scratch);
    size_t mark = scratch.mark();
    auto stored = scratch.take(static_cast<size_t>(bytes_of(source.dtype(), box_elements(box))));
    ARGOSY_TRY_STATUS(source.read(box, stored, scratch));
    cast_elements(source.dtype(), stored, DType::kF32, floats);
    scratch.release(mark);
    return {};
  }

  Status read_tile(const Box& tile, std::span<std::byte> out, Scratch& scratch) const {
    auto floats = scratch.take(static_cast<size_t>(box_elements(tile)) * sizeof(float));
    ARGOSY_TRY_STATUS(read_floats(input(), tile, floats, scratch));
    Box blocks = tile;
    for (size_t d = 0; d < tile.start.size(); ++d) {
      blocks.start[d] = tile.start[d] / how_.block[d];
      blocks.extent[d] = (tile.start[d] + tile.extent[d] - 1) / how_.block[d] + 1 - blocks.start[d];
    }
    auto block_bytes = static_cast<size_t>(box_elements(blocks)) * sizeof(float);
    std::span<std::byte> scales = scratch.take(block_bytes), zeros;
    ARGOSY_TRY_STATUS(read_floats(*inputs()[1], blocks, scales, scratch));
    if (inputs().size() > 2) {
      zeros = scratch.take(block_bytes);
      ARGOSY_TRY_STATUS(read_floats(*inputs()[2], blocks, zeros, scratch));
    }
    compute(tile, blocks, reinterpret_cast<float*>(floats.data()), reinterpret_cast<const float*>(scales.data()),
            reinterpret_cast<float*>(zeros.data()));
    if (dtype() == DType::kF32) {
      std::memcpy(out.data(), floats.data(), out.size());
    } else {
      cast_elements(DType::kF32, floats, dtype(), out);
    }
    return {};
  }

  void compute(const Box& tile, const Box& blocks, float* values, const float* scales, float* zeros) const {
    DefaultFloatMode mode;
    if (zeros != nullptr) add_zero(zeros, box_elements(blocks));
    size_t last = tile.extent.size() - 1;
    int64_t width = tile.extent[last], rows = box_elements(tile) / width, block_width = blocks.extent[last];
    for (int64_t row = 0; row < rows; ++row) {
      // Where the row's blocks begin among those that were read.
      int64_t rest = row, at = 0, stride = block_width;
      for (size_t d = last; d-- > 0;) {
        int64_t index = tile.start[d] + rest % tile.extent[d];
        rest /= tile.extent[d];
        at += (index / how_.block[d] - blocks.start[d]) * stride;
        stride *= blocks.extent[d];
      }
      compute_row(values + row * width, tile.start[last], width, scales + at, zeros == nullptr ? nullptr : zeros + at);
    }
  }

  void compute_row(float* values, int64_t start, int64_t width, const float* scales, const float* zeros) const {
    int64_t block = how_.block.back();
    auto zero = static_cast<float>(how_.zero);
    if (block == 1) {
      scale_each(values, width, scales, zeros, zero);
      return;
    }
    for (int64_t done = 0, i = 0; done < width; ++i) {
      int64_t count = std::min(width - done, block - (start + done) % block);
      scale_run(values + done, count, scales[i], zeros == nullptr ? zero : zeros[i]);
      done += count;
    }
  }

  void add_zero(float* zeros, int64_t count) const {
    auto zero = static_cast<float>(how_.zero), modulus = static_cast<float>(how_.zero_modulus);
    for (int64_t i = 0; i < count; ++i) {
      zeros[i] += zero;
      if (how_.zero_modulus != 0 && zeros[i] >= modulus) zeros[i] -= modulus;
    }
  }

  Dequantization how_;
  int64_t tile_;
};

bool becomes_f32(DType dtype) { return dtype == DType::kF32 || can_cast(dtype, DType::kF32); }

Status check_blocks(const char* what, const TensorSource& blocks, std::span<const int64_t> shape,
                    std::span<const int64_t> block) {
  bool fits = blocks.shape().size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    int64_t count = shape[d] / block[d] + (shape[d] % block[d] != 0 ? 1 : 0);
    fits = blocks.shape()[d] == count;
  }
  if (!fits) {
    return fail(ErrorCode::kInvalidInput,
                format("{} of shape {} for values of shape {} in blocks of {}", what, list_text(blocks.shape()),
                       list_text(shape), list_text(block)),
                "there must be one for each block; the checkpoint and its quantization_config may not belong together");
  }
  if (becomes_f32(blocks.dtype())) return {};
  return fail(ErrorCode::kUnsupportedFeature, format("{} are {}", what, to_text(blocks.dtype())),
              "they must be floats or integers of at least 8 bits");
}

}  // namespace

Result<TensorSourcePtr> dequantized(TensorSourcePtr values, TensorSourcePtr scales, TensorSourcePtr zero_points,
                                    Dequantization how) {
  std::vector<TensorSourcePtr> inputs = {std::move(values), std::move(scales)};
  if (zero_points != nullptr) inputs.push_back(std::move(zero_points));
  ARGOSY_TRY_STATUS(check_recipe_limits(inputs));
  std::span<const int64_t> shape = inputs[0]->shape();
  if (!becomes_f32(inputs[0]->dtype())) {
    return fail(ErrorCode::kUnsupportedFeature, format("cannot dequantise {}", tensor_text(inputs[0]->dtype(), shape)),
                "values must be floats or integers of at least 8 bits; unpack them first");
  }
  if (how.dtype != DType::kF32 && how.dtype != DType::kF16 && how.dtype != DType::kBF16) {
    return fail(ErrorCode::kUnsupportedFeature, format("cannot dequantise to {}", to_text(how.dtype)),
                "the result is f32, f16 or bf16");
  }
  bool has_blocks = !shape.empty() && how.block.size() == shape.size() &&
                    std::ranges::all_of(how.block, [](int64_t size) { return size > 0; });
  if (!has_blocks) {
    return fail(ErrorCode::kInvalidInput,
                format("blocks of {} for values of shape {}", list_text(how.block), list_text(shape)),
                "give each dim a block of at least 1");
  }
  bool is_in_range = how.zero_modulus == 0 ? how.zero > -kMaxZeroPoint && how.zero < kMaxZeroPoint
                                           : how.zero_modulus > 0 && how.zero_modulus <= kMaxZeroPoint &&
                                                 how.zero >= 0 && how.zero < how.zero_modulus;
  if (!is_in_range) {
    return fail(ErrorCode::kInvalidInput, format("a zero point of {}, modulo {}", how.zero, how.zero_modulus),
                "zero points are below 2^24, and below their modulus");
  }
  ARGOSY_TRY_STATUS(check_blocks("scales", *inputs[1], shape, how.block));
  if (inputs.size() > 2) ARGOSY_TRY_STATUS(check_blocks("zero points", *inputs[2], shape, how.block));
  ARGOSY_TRY_STATUS(checked_tensor_bytes(how.dtype, shape));
  return std::make_shared<DequantizeSource>(std::move(inputs), std::move(how));
}

std::optional<DequantizedParts> dequantized_parts(const TensorSource& source) {
  const auto* found = dynamic_cast<const DequantizeSource*>(&source);
  if (found == nullptr) return std::nullopt;
  std::span<const TensorSourcePtr> inputs = found->inputs();
  return DequantizedParts{inputs[0], inputs[1], inputs.size() > 2 ? inputs[2] : nullptr, found->how()};
}

}  // namespace argosy
