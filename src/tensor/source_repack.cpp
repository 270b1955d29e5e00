#include <algorithm>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/dequantize.h"
#include "tensor/repack.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

/// u8 elements plus a number, modulo 2^bits; of 4 bits two in a byte, the first in the low half.
class RepackSource final : public DerivedSource {
 public:
  RepackSource(const TensorSourcePtr& source, std::vector<int64_t> shape, int bits, int64_t add)
      : DerivedSource(SourceKind::kComputed, DType::kU8, std::move(shape), {source}),
        each_(8 / bits),
        mask_(static_cast<uint8_t>((1 << bits) - 1)),
        add_(static_cast<uint8_t>(add)) {}

  std::string recipe() const override {
    return format("repack({}, {} in a byte, add={})", input().recipe(), each_, int{add_});
  }

  size_t scratch_for(int64_t elements) const override {
    int64_t wide = std::min(elements, std::numeric_limits<int64_t>::max() / each_) * each_;
    return saturating_add(scratch_cost(DType::kU8, wide), input().scratch_for(wide));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    Box from = box;
    const int64_t width = input().shape().back(), count = box.extent.back();
    from.start.back() = box.start.back() * each_;
    from.extent.back() = std::min(count * each_, width - from.start.back());
    const int64_t rows = box_elements(box) / count, given = from.extent.back();
    const size_t mark = scratch.mark();
    auto values = scratch.take(static_cast<size_t>(rows * given));
    ARGOSY_TRY_STATUS(input().read(from, values, scratch));
    const auto* in = reinterpret_cast<const uint8_t*>(values.data());
    auto* to = reinterpret_cast<uint8_t*>(out.data());
    for (int64_t row = 0; row < rows; ++row, in += given, to += count) {
      for (int64_t i = 0; i < count; ++i) to[i] = each_ == 1 ? shifted(in[i]) : pair(in, 2 * i, given);
    }
    scratch.release(mark);
    return {};
  }

 private:
  uint8_t shifted(uint8_t value) const { return static_cast<uint8_t>((value + add_) & mask_); }
  /// The last one of an odd number is alone.
  uint8_t pair(const uint8_t* in, int64_t first, int64_t given) const {
    unsigned high = first + 1 < given ? shifted(in[first + 1]) : 0;
    return static_cast<uint8_t>(shifted(in[first]) | high << 4);
  }

  int64_t each_;  // elements in a byte
  uint8_t mask_, add_;
};

Result<TensorSourcePtr> packed(const TensorSourcePtr& source, int bits, int64_t add) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  if (bits == 8 && add == 0) return source;
  std::vector<int64_t> shape(source->shape().begin(), source->shape().end());
  if (bits == 4) shape.back() = (shape.back() + 1) / 2;
  return std::make_shared<RepackSource>(source, std::move(shape), bits, add);
}

/// Bits that u8 elements have at most, as far as what they are moved from tells; 0: others than 4 and 8.
int value_bits(const TensorSource& source) {
  if (source.dtype() != DType::kU8) return 0;
  const TensorSource* at = &source;
  while (at->kind() == SourceKind::kReshape || at->kind() == SourceKind::kTranspose || at->kind() == SourceKind::kSlice)
    at = at->inputs()[0].get();
  if (at->inputs().empty() || at->kind() != SourceKind::kComputed) return 8;
  const DType from = at->inputs()[0]->dtype();
  return from == DType::kU4 ? 4 : bits_of(from) < 8 ? 0 : 8;
}

bool fits_kernels(int64_t block) { return block >= 16 && block <= 256 && (block & (block - 1)) == 0; }

/// Rows of several matrices, one below the other, are several; any other source is itself alone.
std::span<const TensorSourcePtr> parts_of(const TensorSourcePtr& source) {
  const TensorSource& whole = *source;
  if (whole.kind() != SourceKind::kConcat || whole.shape().size() != 2) return {&source, 1};
  for (const TensorSourcePtr& part : whole.inputs()) {
    if (part->shape()[1] != whole.shape()[1]) return {&source, 1};
  }
  return whole.inputs();
}

bool holds(DType wide, DType narrow) {
  return wide == narrow || (wide == DType::kF32 && (narrow == DType::kF16 || narrow == DType::kBF16));
}

/// One matrix: integers of a byte each, and the rest as it is stored.
std::optional<DequantizedParts> part_of(const TensorSource& source, DType scales) {
  std::optional<DequantizedParts> parts = dequantized_parts(source);
  if (!parts || source.shape().size() != 2 || parts->how.block[0] != 1) return std::nullopt;
  const int64_t block = parts->how.block[1];
  if (!fits_kernels(block) || source.shape()[1] % block != 0 || !holds(scales, parts->scales->dtype()))
    return std::nullopt;
  const int bits = value_bits(*parts->values);
  if (bits == 0) return std::nullopt;
  const int64_t zero = parts->how.zero, modulus = parts->how.zero_modulus;
  const bool is_known = parts->zero_points == nullptr ? zero == 1 << (bits - 1)
                                                      : value_bits(*parts->zero_points) == bits &&
                                                            (modulus == 1 << bits || (modulus == 0 && zero == 0));
  return is_known ? parts : std::nullopt;
}

bool are_alike(const DequantizedParts& a, const DequantizedParts& b) {
  return a.how.block == b.how.block && a.how.zero == b.how.zero && a.how.zero_modulus == b.how.zero_modulus &&
         (a.zero_points == nullptr) == (b.zero_points == nullptr) && value_bits(*a.values) == value_bits(*b.values);
}

}  // namespace

bool is_dequantized(const TensorSource& source) {
  if (source.kind() != SourceKind::kConcat) return dequantized_parts(source).has_value();
  return std::ranges::any_of(source.inputs(), [](const TensorSourcePtr& part) { return is_dequantized(*part); });
}

Result<std::optional<RepackedWeight>> repacked(const TensorSourcePtr& source, DType scales) {
  std::vector<TensorSourcePtr> integers, factors, zeros;
  std::optional<DequantizedParts> first;
  for (const TensorSourcePtr& each : parts_of(source)) {
    std::optional<DequantizedParts> part = part_of(*each, scales);
    if (!part || (first && !are_alike(*first, *part))) return std::nullopt;
    if (!first) first = part;
    integers.push_back(part->values);
    ARGOSY_TRY(TensorSourcePtr exact, converted(part->scales, scales));
    factors.push_back(std::move(exact));
    if (part->zero_points != nullptr) zeros.push_back(part->zero_points);
  }
  RepackedWeight weight;
  weight.bits = value_bits(*first->values);
  weight.block = first->how.block[1];
  ARGOSY_TRY(TensorSourcePtr values, concatenated(std::move(integers), 0));
  ARGOSY_TRY(TensorSourcePtr bytes, packed(values, weight.bits, 0));
  const int64_t rows = source->shape()[0], blocks = source->shape()[1] / weight.block;
  ARGOSY_TRY(weight.integers, reshaped(std::move(bytes), {rows, blocks, weight.block * weight.bits / 8}));
  ARGOSY_TRY(weight.scales, concatenated(std::move(factors), 0));
  if (!zeros.empty()) {
    ARGOSY_TRY(TensorSourcePtr all, concatenated(std::move(zeros), 0));
    ARGOSY_TRY(weight.zero_points, packed(all, weight.bits, first->how.zero));
  }
  return weight;
}

}  // namespace argosy
