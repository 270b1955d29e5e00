#include "backends/onnx/half_fit.h"

#include <algorithm>
#include <cstring>

namespace argosy::onnx {
namespace {

constexpr size_t kFitScratch = size_t{16} << 20;
constexpr uint16_t kHalfInfinity = 0x7c00, kHalfSmallestNormal = 0x0400, kHalfNoSign = 0x7fff;

/// The bits of the largest magnitude of a tensor of f16: bits of magnitudes are ordered as they are.
Result<uint16_t> largest_bits(const TensorSource& half) {
  uint16_t largest = 0;
  ARGOSY_TRY_STATUS(half.stream_to(
      [&](std::span<const std::byte> block) -> Status {
        for (size_t i = 0; i + sizeof(uint16_t) <= block.size(); i += sizeof(uint16_t)) {
          uint16_t word;
          std::memcpy(&word, block.data() + i, sizeof(word));
          word = static_cast<uint16_t>(word & kHalfNoSign);
          largest = std::max(largest, word);
        }
        return {};
      },
      kFitScratch));
  return largest;
}

Result<bool> is_all_zero(const TensorSource& tensor) {
  bool is_zero = true;
  ARGOSY_TRY_STATUS(tensor.stream_to(
      [&](std::span<const std::byte> block) -> Status {
        is_zero = is_zero && std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
        return {};
      },
      kFitScratch));
  return is_zero;
}

}  // namespace

Result<bool> fits_half(const TensorSourcePtr& tensor) {
  if (tensor->kind() == SourceKind::kCast && tensor->inputs().front()->dtype() == DType::kF16) return true;
  ARGOSY_TRY(TensorSourcePtr half, converted(tensor, DType::kF16));
  ARGOSY_TRY(uint16_t largest, largest_bits(*half));
  if (largest >= kHalfInfinity) return false;
  if (largest == 0) return is_all_zero(*tensor);
  return largest >= kHalfSmallestNormal;
}

}  // namespace argosy::onnx
