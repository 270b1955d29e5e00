#include "tensor/dtype.h"

#include <algorithm>
#include <array>

#include "base/checked_math.h"

namespace argosy {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view text, safetensors;
  int bits;
  DTypeKind kind;
};

constexpr DTypeRow kDTypes[] = {
#define ARGOSY_X(name, text, safetensors, bits, kind) {DType::name, text, safetensors, bits, DTypeKind::kind},
    ARGOSY_DTYPES(ARGOSY_X)
#undef ARGOSY_X
};

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

bool is_integer(DTypeKind kind) { return kind == DTypeKind::kUnsigned || kind == DTypeKind::kSigned; }

// PyTorch promotes neither among 8-bit (or smaller) floats and others nor the unsigned types above u8, except with
// themselves.
bool takes_part_in_promotion(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kC32:
    case DType::kC64:
    case DType::kC128: return true;
    default: return false;
  }
}

DType complex_of(DType real) {
  switch (real) {
    case DType::kF16: return DType::kC32;
    case DType::kF64: return DType::kC128;
    default: return DType::kC64;
  }
}

DType promote_complex(DType complex, DType other) {
  if (kind_of(other) != DTypeKind::kFloat && kind_of(other) != DTypeKind::kComplex) return complex;
  DType second = kind_of(other) == DTypeKind::kComplex ? other : complex_of(other);
  return bits_of(second) > bits_of(complex) ? second : complex;
}

}  // namespace

DTypeKind kind_of(DType dtype) { return row(dtype).kind; }
int bits_of(DType dtype) { return row(dtype).bits; }
std::string_view to_text(DType dtype) { return row(dtype).text; }
std::string_view safetensors_name(DType dtype) { return row(dtype).safetensors; }

std::optional<DType> dtype_from_text(std::string_view text) {
  auto found = std::ranges::find(kDTypes, text, &DTypeRow::text);
  if (found == std::end(kDTypes)) return std::nullopt;
  return found->dtype;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  if (name.empty()) return std::nullopt;
  auto found = std::ranges::find(kDTypes, name, &DTypeRow::safetensors);
  if (found == std::end(kDTypes)) return std::nullopt;
  return found->dtype;
}

std::optional<int64_t> packed_bytes(DType dtype, int64_t count) {
  if (count < 0) return std::nullopt;
  auto bits = checked_mul(count, bits_of(dtype));
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (!takes_part_in_promotion(a) || !takes_part_in_promotion(b)) return std::nullopt;
  DTypeKind kind_a = kind_of(a), kind_b = kind_of(b);
  if (kind_a == DTypeKind::kComplex) return promote_complex(a, b);
  if (kind_b == DTypeKind::kComplex) return promote_complex(b, a);
  if (kind_a == DTypeKind::kBool) return b;
  if (kind_b == DTypeKind::kBool) return a;
  bool is_float_a = kind_a == DTypeKind::kFloat, is_float_b = kind_b == DTypeKind::kFloat;
  if (is_float_a && is_float_b) {
    if (bits_of(a) == bits_of(b)) return DType::kF32;  // f16 with bf16
    return bits_of(a) > bits_of(b) ? a : b;
  }
  if (is_float_a) return a;
  if (is_float_b) return b;
  // Both are integers; u8 is the only unsigned one left, and needs the next wider signed type.
  if (!is_integer(kind_a) || !is_integer(kind_b)) return std::nullopt;
  if (bits_of(a) == bits_of(b)) return DType::kI16;  // u8 with i8
  return bits_of(a) > bits_of(b) ? a : b;
}

}  // namespace argosy
