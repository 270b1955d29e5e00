#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace argosy {

// clang-format off
/// Every element type: (enumerator, text, safetensors name or "", bits, kind). Texts are those of IR dumps.
#define ARGOSY_DTYPES(X)                             \
  X(kBool,      "bool",      "BOOL",     8,   kBool)    \
  X(kU8,        "u8",        "U8",       8,   kUnsigned) \
  X(kI8,        "i8",        "I8",       8,   kSigned)  \
  X(kU16,       "u16",       "U16",      16,  kUnsigned) \
  X(kI16,       "i16",       "I16",      16,  kSigned)  \
  X(kU32,       "u32",       "U32",      32,  kUnsigned) \
  X(kI32,       "i32",       "I32",      32,  kSigned)  \
  X(kU64,       "u64",       "U64",      64,  kUnsigned) \
  X(kI64,       "i64",       "I64",      64,  kSigned)  \
  X(kF16,       "f16",       "F16",      16,  kFloat)   \
  X(kBF16,      "bf16",      "BF16",     16,  kFloat)   \
  X(kF32,       "f32",       "F32",      32,  kFloat)   \
  X(kF64,       "f64",       "F64",      64,  kFloat)   \
  X(kC32,       "c32",       "",         32,  kComplex) \
  X(kC64,       "c64",       "C64",      64,  kComplex) \
  X(kC128,      "c128",      "",         128, kComplex) \
  X(kF8E4M3FN,  "f8e4m3fn",  "F8_E4M3",  8,   kFloat)   \
  X(kF8E5M2,    "f8e5m2",    "F8_E5M2",  8,   kFloat)   \
  X(kF8E4M3FNUZ,"f8e4m3fnuz","F8_E4M3FNUZ", 8, kFloat)  \
  X(kF8E5M2FNUZ,"f8e5m2fnuz","F8_E5M2FNUZ", 8, kFloat)  \
  X(kF8E8M0FNU, "f8e8m0fnu", "F8_E8M0",  8,   kFloat)   \
  X(kF6E2M3,    "f6e2m3",    "F6_E2M3",  6,   kFloat)   \
  X(kF6E3M2,    "f6e3m2",    "F6_E3M2",  6,   kFloat)   \
  X(kF4E2M1,    "f4e2m1",    "F4",       4,   kFloat)   \
  X(kU1,        "u1",        "",         1,   kUnsigned) \
  X(kU2,        "u2",        "",         2,   kUnsigned) \
  X(kU3,        "u3",        "",         3,   kUnsigned) \
  X(kU4,        "u4",        "",         4,   kUnsigned) \
  X(kU5,        "u5",        "",         5,   kUnsigned) \
  X(kU6,        "u6",        "",         6,   kUnsigned) \
  X(kU7,        "u7",        "",         7,   kUnsigned) \
  X(kI1,        "i1",        "",         1,   kSigned)  \
  X(kI2,        "i2",        "",         2,   kSigned)  \
  X(kI3,        "i3",        "",         3,   kSigned)  \
  X(kI4,        "i4",        "",         4,   kSigned)  \
  X(kI5,        "i5",        "",         5,   kSigned)  \
  X(kI6,        "i6",        "",         6,   kSigned)  \
  X(kI7,        "i7",        "",         7,   kSigned)
// clang-format on

/// The type of a tensor's elements. Types of less than 8 bits are packed without gaps, low bits first.
enum class DType : uint8_t {
#define ARGOSY_X(name, text, safetensors, bits, kind) name,
  ARGOSY_DTYPES(ARGOSY_X)
#undef ARGOSY_X
};

/// In the order in which PyTorch's type promotion ranks them (both integer kinds rank the same).
enum class DTypeKind : uint8_t { kBool, kUnsigned, kSigned, kFloat, kComplex };

DTypeKind kind_of(DType dtype);
inline bool is_float(DType dtype) { return kind_of(dtype) == DTypeKind::kFloat; }
inline bool is_complex(DType dtype) { return kind_of(dtype) == DTypeKind::kComplex; }
int bits_of(DType dtype);
std::string_view to_text(DType dtype);           // "bf16"
std::string_view safetensors_name(DType dtype);  // "BF16", "" if the format has none
std::optional<DType> dtype_from_text(std::string_view text);
std::optional<DType> dtype_from_safetensors(std::string_view name);

/// Bytes of `count` packed elements; nullopt when that overflows, or is not a whole number of bytes.
std::optional<int64_t> packed_bytes(DType dtype, int64_t count);

/// The type that PyTorch promotes two operands of the same rank category to (torch.promote_types); nullopt where
/// PyTorch refuses.
std::optional<DType> promote(DType a, DType b);

}  // namespace argosy
