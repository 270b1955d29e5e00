#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/dequantize.h"
#include "tensor/source.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

class CastSource final : public DerivedSource {
 public:
  CastSource(TensorSourcePtr source, DType dtype)
      : DerivedSource(SourceKind::kCast, dtype, {source->shape().begin(), source->shape().end()}, {source}) {}

  std::string recipe() const override { return format("cast({}, {})", input().recipe(), to_text(dtype())); }

  size_t scratch_for(int64_t elements) const override {
    return saturating_add(scratch_cost(input().dtype(), elements), input().scratch_for(elements));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    size_t mark = scratch.mark();
    auto values = scratch.take(static_cast<size_t>(bytes_of(input().dtype(), box_elements(box))));
    ARGOSY_TRY_STATUS(input().read(box, values, scratch));
    cast_elements(input().dtype(), values, dtype(), out);
    scratch.release(mark);
    return {};
  }
};

}  // namespace

Result<TensorSourcePtr> converted(TensorSourcePtr source, DType dtype) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  if (source->dtype() == dtype) return source;
  if (!can_cast(source->dtype(), dtype)) {
    return fail(
        ErrorCode::kUnsupportedFeature,
        format("cannot cast {} to {}", tensor_text(source->dtype(), source->shape()), to_text(dtype)),
        "casts go among f64, f32, f16 and bf16, from integers, bool and 8-bit floats to these, and to wider integers");
  }
  if (bits_of(source->dtype()) < 8) return unpacked(std::move(source), dtype);
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, source->shape()));
  // Through a type that loses nothing is the same as directly; back to the first type is not, as NaNs become quiet.
  if (source->kind() == SourceKind::kCast) {
    const TensorSourcePtr& origin = source->inputs().front();
    if (is_exact_cast(origin->dtype(), source->dtype()) && can_cast(origin->dtype(), dtype)) {
      return converted(origin, dtype);
    }
  }
  return std::make_shared<CastSource>(std::move(source), dtype);
}

}  // namespace argosy
