#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/float_mode.h"
#include "tensor/quantize_bias.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

class BiasScales final : public DerivedSource {
 public:
  BiasScales(const TensorSourcePtr& weight_scales, float input_scale)
      : DerivedSource(SourceKind::kComputed, DType::kF32, {weight_scales->shape()[0]}, {weight_scales}),
        input_scale_(input_scale) {}

  std::string recipe() const override {
    return format("times({}, {})", input().recipe(), format_double(static_cast<double>(input_scale_)));
  }
  size_t scratch_for(int64_t elements) const override { return input().scratch_for(elements); }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    ARGOSY_TRY_STATUS(input().read(box, out, scratch));
    DefaultFloatMode mode;
    auto* scales = reinterpret_cast<float*>(out.data());
    for (size_t i = 0; i < out.size() / sizeof(float); ++i) scales[i] *= input_scale_;
    return {};
  }

 private:
  float input_scale_;
};

class BiasValues final : public DerivedSource {
 public:
  BiasValues(const TensorSourcePtr& bias, const TensorSourcePtr& scales)
      : DerivedSource(SourceKind::kComputed, DType::kI32, {bias->shape()[0]}, {bias, scales}) {}

  std::string recipe() const override { return format("bias32({}, {})", input().recipe(), inputs()[1]->recipe()); }

  size_t scratch_for(int64_t elements) const override {
    size_t below = std::max(input().scratch_for(elements), inputs()[1]->scratch_for(elements));
    return saturating_add(scratch_cost(DType::kF32, elements), below);
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    size_t mark = scratch.mark();
    std::span<std::byte> divisors = scratch.take(out.size());
    ARGOSY_TRY_STATUS(inputs()[1]->read(box, divisors, scratch));
    ARGOSY_TRY_STATUS(input().read(box, out, scratch));
    DefaultFloatMode mode;
    const auto* scales = reinterpret_cast<const float*>(divisors.data());
    const auto* floats = reinterpret_cast<const float*>(out.data());
    auto* integers = reinterpret_cast<int32_t*>(out.data());
    constexpr double kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < out.size() / sizeof(float); ++i) {
      double quotient = static_cast<double>(floats[i]) / static_cast<double>(scales[i]);
      if (!std::isfinite(quotient)) {
        return fail(ErrorCode::kInvalidInput,
                    format("a NaN or an infinity at {} of {}", box.start[0] + static_cast<int64_t>(i),
                           quoted(input().recipe())),
                    "leave this layer out of quantisation, or repair the checkpoint");
      }
      integers[i] = static_cast<int32_t>(std::clamp(std::nearbyint(quotient), kLeast, kMost));
    }
    scratch.release(mark);
    return {};
  }
};

}  // namespace

Result<QuantizedBias> quantized_bias(const TensorSourcePtr& bias, const TensorSourcePtr& weight_scales,
                                     float input_scale) {
  if (weight_scales->dtype() != DType::kF32 || bias->shape().size() != 1 ||
      !std::ranges::equal(bias->shape(), weight_scales->shape())) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot quantise {} with scales {}", tensor_text(bias->dtype(), bias->shape()),
                       tensor_text(weight_scales->dtype(), weight_scales->shape())),
                "a bias has one number for each scale");
  }
  ARGOSY_TRY(TensorSourcePtr floats, converted(bias, DType::kF32));
  const TensorSourcePtr both[] = {floats, weight_scales};
  ARGOSY_TRY_STATUS(check_recipe_limits(both));
  TensorSourcePtr scales = std::make_shared<BiasScales>(weight_scales, input_scale);
  return QuantizedBias{std::make_shared<BiasValues>(floats, scales), scales};
}

}  // namespace argosy
