#include "backends/onnx/overflow.h"

#include <cstring>
#include <type_traits>

namespace argosy::onnx {
namespace {

constexpr size_t kOverflowScratch = size_t{16} << 20;

/// Values whose bits, without the sign, are those of infinity.
template <class Word>
uint64_t count_words(std::span<const std::byte> block, Word infinity) {
  constexpr Word kNoSign = static_cast<Word>(~Word{0}) >> 1;
  size_t count = block.size() / sizeof(Word);
  uint64_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, block.data() + i * sizeof(Word), sizeof(Word));
    found += static_cast<Word>(word & kNoSign) == infinity ? 1 : 0;
  }
  return found;
}

uint64_t infinities_of(DType dtype, std::span<const std::byte> block) {
  switch (dtype) {
    case DType::kF16: return count_words<uint16_t>(block, 0x7c00);
    case DType::kBF16: return count_words<uint16_t>(block, 0x7f80);
    case DType::kF32: return count_words<uint32_t>(block, 0x7f800000);
    case DType::kF64: return count_words<uint64_t>(block, 0x7ff0000000000000);
    default: return 0;  // integers
  }
}

bool is_narrowing(const TensorSource& source) {
  return source.kind() == SourceKind::kCast && source.dtype() == DType::kF16;
}

Result<uint64_t> count_infinities(const TensorSource& source) {
  uint64_t found = 0;
  ARGOSY_TRY_STATUS(source.stream_to(
      [&](std::span<const std::byte> block) -> Status {
        found += infinities_of(source.dtype(), block);
        return {};
      },
      kOverflowScratch));
  return found;
}

/// Of what the conversions in a recipe read.
Result<uint64_t> infinities_before(const TensorSource& source) {
  if (is_narrowing(source)) return count_infinities(*source.inputs().front());
  uint64_t found = 0;
  for (const TensorSourcePtr& input : source.inputs()) {
    ARGOSY_TRY(uint64_t more, infinities_before(*input));
    found += more;
  }
  return found;
}

}  // namespace

bool may_overflow(const TensorSource& source) {
  if (source.dtype() != DType::kF16) return false;
  if (is_narrowing(source)) return true;
  for (const TensorSourcePtr& input : source.inputs()) {
    if (may_overflow(*input)) return true;
  }
  return false;
}

uint64_t infinities(std::span<const std::byte> block) { return infinities_of(DType::kF16, block); }

Result<uint64_t> count_overflows(const TensorSource& source, uint64_t infinite) {
  if (infinite == 0) return 0;
  ARGOSY_TRY(uint64_t before, infinities_before(source));
  return infinite > before ? infinite - before : 0;
}

Result<uint64_t> count_overflows(const TensorSource& source) {
  ARGOSY_TRY(uint64_t infinite, count_infinities(source));
  return count_overflows(source, infinite);
}

}  // namespace argosy::onnx
