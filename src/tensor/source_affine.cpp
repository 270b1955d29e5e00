#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/dequantize.h"
#include "tensor/float_mode.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

constexpr int64_t kAffineTile = int64_t{1} << 16;

class AffineSource final : public DerivedSource {
 public:
  AffineSource(const TensorSourcePtr& source, float scale, float offset, DType dtype)
      : DerivedSource(SourceKind::kComputed, dtype, {source->shape().begin(), source->shape().end()}, {source}),
        scale_(scale),
        offset_(offset) {}

  std::string recipe() const override {
    return format("affine({}, {}, {}, {})", input().recipe(), format_double(scale_), format_double(offset_),
                  to_text(dtype()));
  }

  size_t scratch_for(int64_t elements) const override {
    int64_t count = std::min(elements, kAffineTile);
    return saturating_add(scratch_cost(DType::kF32, count), input().scratch_for(count));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    return for_each_part(box, kAffineTile, [&](const Box& tile, int64_t step) -> Status {
      size_t mark = scratch.mark();
      auto floats = scratch.take(static_cast<size_t>(step) * sizeof(float));
      ARGOSY_TRY_STATUS(input().read(tile, floats, scratch));
      compute(reinterpret_cast<float*>(floats.data()), step);
      auto bytes = static_cast<size_t>(bytes_of(dtype(), step));
      if (dtype() == DType::kF32) {
        std::memcpy(out.data(), floats.data(), bytes);
      } else {
        cast_elements(DType::kF32, floats, dtype(), out.first(bytes));
      }
      scratch.release(mark);
      out = out.subspan(bytes);
      return {};
    });
  }

 private:
  void compute(float* values, int64_t count) const {
    DefaultFloatMode mode;
    for (int64_t i = 0; i < count; ++i) values[i] = values[i] * scale_ + offset_;
  }

  float scale_, offset_;
};

}  // namespace

Result<TensorSourcePtr> affine(const TensorSourcePtr& source, float scale, float offset, DType dtype) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  if (source->dtype() != DType::kF32 || (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16)) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("cannot scale {} to {}", tensor_text(source->dtype(), source->shape()), to_text(dtype)),
                "values are f32, and the result is f32, f16 or bf16");
  }
  if (!std::isfinite(scale) || !std::isfinite(offset)) {
    return fail(ErrorCode::kInvalidInput, format("a scale of {} and an offset of {}", scale, offset),
                "both must be finite");
  }
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, source->shape()));
  return std::make_shared<AffineSource>(source, scale, offset, dtype);
}

}  // namespace argosy
