#include "io/pt2_format.h"

namespace argosy {
namespace {

struct NumberedDType {
  int64_t number;
  DType dtype;
};

constexpr NumberedDType kDTypes[] = {
    {1, DType::kU8},          {2, DType::kI8},          {3, DType::kI16},        {4, DType::kI32},
    {5, DType::kI64},         {6, DType::kF16},         {7, DType::kF32},        {8, DType::kF64},
    {9, DType::kC32},         {10, DType::kC64},        {11, DType::kC128},      {12, DType::kBool},
    {13, DType::kBF16},       {28, DType::kU16},        {29, DType::kF8E4M3FN},  {30, DType::kF8E5M2},
    {31, DType::kF8E4M3FNUZ}, {32, DType::kF8E5M2FNUZ}, {33, DType::kF8E8M0FNU}, {34, DType::kU32},
    {35, DType::kU64},
};

}  // namespace

std::optional<DType> dtype_from_pt2(int64_t number) {
  for (const NumberedDType& row : kDTypes) {
    if (row.number == number) return row.dtype;
  }
  return std::nullopt;
}

std::optional<int64_t> pt2_number(DType dtype) {
  for (const NumberedDType& row : kDTypes) {
    if (row.dtype == dtype) return row.number;
  }
  return std::nullopt;
}

}  // namespace argosy
