#pragma once

#include <cstdint>
#include <initializer_list>

#include "tensor/dtype.h"

namespace argosy {

/// Ops that ONNX Runtime has beyond ONNX, as far as graphs of ours use them.
enum class RuntimeOp : uint8_t {
  kFusedMatMul,
  kGroupQueryAttention,
  kLinearAttention,
  kRotaryEmbedding,
  kSimplifiedLayerNormalization,
  kSkipSimplifiedLayerNormalization,
  kMixtureOfExperts,
  kMultiHeadAttention,
  kMatMulBnb4,
};

/// Which of them may be used, and with which element types. A few bits; cheap to copy.
class RuntimeOps {
 public:
  constexpr RuntimeOps() = default;
  /// As bits() gave it.
  constexpr explicit RuntimeOps(uint64_t bits) : bits_(bits) {}

  /// These and one more. Types other than f16, bf16, f32 and f64 are left out: no graph uses the ops with them.
  constexpr RuntimeOps with(RuntimeOp op, std::initializer_list<DType> dtypes) const {
    RuntimeOps more = *this;
    for (DType dtype : dtypes) more.bits_ |= bit(op, dtype);
    return more;
  }
  constexpr bool takes(RuntimeOp op, DType dtype) const { return (bits_ & bit(op, dtype)) != 0; }
  /// With any type.
  constexpr bool has(RuntimeOp op) const { return ((bits_ >> place(op)) & kTypes) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }
  constexpr uint64_t bits() const { return bits_; }

 private:
  static constexpr unsigned kTypeCount = 4;
  static constexpr uint64_t kTypes = (uint64_t{1} << kTypeCount) - 1;

  static constexpr unsigned place(RuntimeOp op) { return kTypeCount * static_cast<unsigned>(op); }
  static constexpr uint64_t bit(RuntimeOp op, DType dtype) {
    uint64_t type = dtype == DType::kF32 ? 1 : dtype == DType::kF16 ? 2 : dtype == DType::kBF16 ? 4 : 0;
    if (dtype == DType::kF64) type = 8;
    return type << place(op);
  }

  uint64_t bits_ = 0;
};

}  // namespace argosy
