#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/float_mode.h"
#include "tensor/lanes.h"
#include "tensor/quantize_rows.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

constexpr int64_t kRowsTile = int64_t{1} << 16;

struct Range {
  float least = 0, most = 0;  // zero is always in it
};

/// In lanes, so that compilers vectorise it: the least of floats is the same in any order.
void widen(Range& range, const float* values, int64_t count) {
  float least[kLanes], most[kLanes];
  int is_odd[kLanes] = {};
  std::ranges::fill(least, range.least);
  std::ranges::fill(most, range.most);
  auto take = [&](size_t lane, float value) {
    least[lane] = value < least[lane] ? value : least[lane];
    most[lane] = value > most[lane] ? value : most[lane];
    is_odd[lane] |= static_cast<int>(!(value - value == 0));  // NaN or infinite
  };
  const auto size = static_cast<size_t>(count);
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, values[i + lane]);
  }
  for (; i < size; ++i) take(0, values[i]);
  range = {*std::ranges::min_element(least), *std::ranges::max_element(most)};
  if (*std::ranges::max_element(is_odd) != 0) range.most = std::numeric_limits<float>::infinity();
}

/// As quantize_dynamic has it: in double, the scale rounded at the end.
[[gnu::noinline]] void choose(const Range& range, bool is_signed, float& scale, uint8_t& zero) {
  const double least = range.least, most = range.most;
  const double span = is_signed ? 2 * std::max(-least, most) : most - least;
  const double step = span / (is_signed ? 254 : 255);
  const bool is_tiny = step < static_cast<double>(std::numeric_limits<float>::min());
  scale = is_tiny ? 1.0F : static_cast<float>(step);
  zero = is_signed || is_tiny ? uint8_t{0} : static_cast<uint8_t>(std::nearbyint(-least / step));
}

[[gnu::noinline]] void to_integers(const float* values, int64_t count, float scale, float zero, bool is_signed,
                                   std::byte* out) {
  const float low = is_signed ? -128.0F : 0.0F, high = is_signed ? 127.0F : 255.0F;
  for (int64_t i = 0; i < count; ++i) {
    float rounded = (values[i] / scale + kRounder) - kRounder + zero;
    rounded = rounded < low ? low : rounded;
    rounded = rounded > high ? high : rounded;
    out[i] = static_cast<std::byte>(static_cast<int>(rounded) & 0xff);
  }
}

/// Scales and zero points of all rows, found once.
class RowScales {
 public:
  RowScales(TensorSourcePtr source, bool is_signed) : source_(std::move(source)), is_signed_(is_signed) {}

  const TensorSourcePtr& source() const { return source_; }
  bool is_signed() const { return is_signed_; }
  std::span<const float> scales() const { return scales_; }
  std::span<const uint8_t> zeros() const { return zeros_; }

  std::string recipe() const { return format("rows8({}, {})", source_->recipe(), is_signed_ ? "signed" : "unsigned"); }

  size_t scratch() const {
    int64_t count = std::min(source_->elements(), kRowsTile);
    return saturating_add(scratch_cost(DType::kF32, count), source_->scratch_for(count));
  }

  Status find(Scratch& scratch) {
    std::call_once(once_, [&] { found_ = find_all(scratch); });
    return found_;
  }

 private:
  Status find_all(Scratch& scratch) {
    const int64_t rows = source_->shape()[0], width = source_->shape()[1];
    std::vector<Range> ranges(static_cast<size_t>(rows));
    Status read = for_each_part({{0, 0}, {rows, width}}, kRowsTile, [&](const Box& part, int64_t step) -> Status {
      size_t mark = scratch.mark();
      auto bytes = scratch.take(static_cast<size_t>(step) * sizeof(float));
      ARGOSY_TRY_STATUS(source_->read(part, bytes, scratch));
      const auto* values = reinterpret_cast<const float*>(bytes.data());
      for (int64_t r = 0; r < part.extent[0]; ++r)
        widen(ranges[static_cast<size_t>(part.start[0] + r)], values + r * part.extent[1], part.extent[1]);
      scratch.release(mark);
      return {};
    });
    ARGOSY_TRY_STATUS(read);
    scales_.resize(ranges.size());
    zeros_.resize(ranges.size());
    DefaultFloatMode mode;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (!std::isfinite(ranges[i].most)) {
        return fail(ErrorCode::kInvalidInput,
                    format("a NaN or an infinity in row {} of {}", i, quoted(source_->recipe())),
                    "leave this tensor out of quantisation, or repair the checkpoint");
      }
      choose(ranges[i], is_signed_, scales_[i], zeros_[i]);
    }
    return {};
  }

  TensorSourcePtr source_;  // f32
  bool is_signed_;
  std::once_flag once_;
  Status found_;
  std::vector<float> scales_;
  std::vector<uint8_t> zeros_;
};

using RowScalesPtr = std::shared_ptr<RowScales>;

class RowValues final : public DerivedSource {
 public:
  explicit RowValues(const RowScalesPtr& rows)
      : DerivedSource(SourceKind::kComputed, rows->is_signed() ? DType::kI8 : DType::kU8,
                      {rows->source()->shape().begin(), rows->source()->shape().end()}, {rows->source()}),
        rows_(rows) {}

  std::string recipe() const override { return rows_->recipe(); }

  size_t scratch_for(int64_t elements) const override {
    int64_t count = std::min(elements, kRowsTile);
    return std::max(rows_->scratch(), saturating_add(scratch_cost(DType::kF32, count), input().scratch_for(count)));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    ARGOSY_TRY_STATUS(rows_->find(scratch));
    return for_each_part(box, kRowsTile, [&](const Box& part, int64_t step) -> Status {
      size_t mark = scratch.mark();
      auto bytes = scratch.take(static_cast<size_t>(step) * sizeof(float));
      ARGOSY_TRY_STATUS(input().read(part, bytes, scratch));
      round(part, reinterpret_cast<const float*>(bytes.data()), out.data());
      scratch.release(mark);
      out = out.subspan(static_cast<size_t>(step));
      return {};
    });
  }

 private:
  void round(const Box& part, const float* values, std::byte* out) const {
    DefaultFloatMode mode;
    const int64_t width = part.extent[1];
    for (int64_t r = 0; r < part.extent[0]; ++r) {
      auto row = static_cast<size_t>(part.start[0] + r);
      to_integers(values + r * width, width, rows_->scales()[row], rows_->zeros()[row], rows_->is_signed(),
                  out + r * width);
    }
  }

  RowScalesPtr rows_;
};

/// The scales, or the zero points.
class RowFacts final : public DerivedSource {
 public:
  RowFacts(const RowScalesPtr& rows, DType dtype)
      : DerivedSource(SourceKind::kComputed, dtype, {rows->source()->shape()[0]}, {rows->source()}), rows_(rows) {}

  std::string recipe() const override {
    return format("{}.{}", rows_->recipe(), dtype() == DType::kF32 ? "scales" : "zero_points");
  }
  size_t scratch_for(int64_t /*elements*/) const override { return rows_->scratch(); }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    ARGOSY_TRY_STATUS(rows_->find(scratch));
    auto all = dtype() == DType::kF32 ? std::as_bytes(rows_->scales()) : std::as_bytes(rows_->zeros());
    std::ranges::copy(all.subspan(static_cast<size_t>(bytes_of(dtype(), box.start[0])), out.size()), out.begin());
    return {};
  }

 private:
  RowScalesPtr rows_;
};

}  // namespace

Result<QuantizedRows> quantized_rows(const TensorSourcePtr& source, bool is_signed) {
  DType type = source->dtype();
  if ((type != DType::kF32 && type != DType::kF16 && type != DType::kBF16) || source->shape().size() != 2) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("cannot quantise {} by rows", tensor_text(type, source->shape())),
                "that takes f32, f16 and bf16 of two dims");
  }
  ARGOSY_TRY(TensorSourcePtr floats, converted(source, DType::kF32));
  ARGOSY_TRY_STATUS(check_recipe_limits({&floats, 1}));
  auto rows = std::make_shared<RowScales>(std::move(floats), is_signed);
  return QuantizedRows{std::make_shared<RowValues>(rows), std::make_shared<RowFacts>(rows, DType::kF32),
                       is_signed ? nullptr : std::make_shared<RowFacts>(rows, DType::kU8)};
}

}  // namespace argosy
