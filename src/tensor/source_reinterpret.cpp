#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/cast.h"
#include "tensor/dequantize.h"
#include "tensor/source_derived.h"
#include "tensor/unpack.h"

namespace argosy {
namespace {

// ---- The same bits as another dtype ----

std::vector<int64_t> with_parts(std::span<const int64_t> shape, int64_t parts) {
  std::vector<int64_t> result(shape.begin(), shape.end());
  if (parts > 1) result.push_back(parts);
  return result;
}

class ReinterpretSource final : public DerivedSource {
 public:
  ReinterpretSource(TensorSourcePtr source, DType dtype, int64_t parts)
      : DerivedSource(SourceKind::kComputed, dtype, with_parts(source->shape(), parts), {source}), parts_(parts) {}

  std::string recipe() const override { return format("bitcast({}, {})", input().recipe(), to_text(dtype())); }
  std::optional<FileRange> file_range() const override { return input().file_range(); }

  size_t scratch_for(int64_t elements) const override {
    size_t below = input().scratch_for(elements);
    return parts_ == 1 ? below : saturating_add(below, scratch_cost(input().dtype(), elements));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (parts_ == 1) return input().read(box, out, scratch);
    Box whole = box;
    whole.start.pop_back();
    whole.extent.pop_back();
    if (box.extent.back() == parts_) return input().read(whole, out, scratch);
    // Some parts of each element: all of it is read, and these are picked.
    size_t mark = scratch.mark();
    int64_t count = box_elements(whole), whole_bytes = bits_of(input().dtype()) / 8;
    auto values = scratch.take(static_cast<size_t>(count * whole_bytes));
    ARGOSY_TRY_STATUS(input().read(whole, values, scratch));
    int64_t part_bytes = bytes_of(dtype(), box.extent.back());
    copy_runs(out.data(), part_bytes, values.data() + bytes_of(dtype(), box.start.back()), whole_bytes, part_bytes,
              count);
    scratch.release(mark);
    return {};
  }

 private:
  int64_t parts_;  // elements that one of the input becomes
};

// ---- Elements of less than a byte, in a byte each ----

class UnpackSource final : public DerivedSource {
 public:
  UnpackSource(TensorSourcePtr source, DType dtype)
      : DerivedSource(SourceKind::kComputed, dtype, {source->shape().begin(), source->shape().end()}, {source}),
        unit_(elements_per_unit(source->dtype())) {}

  std::string recipe() const override { return format("cast({}, {})", input().recipe(), to_text(dtype())); }

  size_t scratch_for(int64_t elements) const override {
    // A row of one element takes a byte, as any element does here; a row that crosses bytes at both ends takes one more
    // than half of its elements.
    int64_t widened = std::min(elements, std::numeric_limits<int64_t>::max() / 16);
    size_t stored = Scratch::cost(static_cast<size_t>(widened));
    size_t bytes = Scratch::cost(static_cast<size_t>(widened * unit_));
    return saturating_add(saturating_add(stored, bytes), input().scratch_for(widened * unit_));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    int64_t width = box.extent.back(), rows = box_elements(box) / width;
    Box whole = box;
    whole.start.back() = box.start.back() / unit_ * unit_;
    int64_t end = (box.start.back() + width + unit_ - 1) / unit_ * unit_;
    int64_t whole_width = whole.extent.back() = end - whole.start.back();
    size_t mark = scratch.mark();
    auto stored = scratch.take(static_cast<size_t>(rows * whole_width / unit_));
    ARGOSY_TRY_STATUS(input().read(whole, stored, scratch));
    if (whole_width == width) {
      unpack_elements(input().dtype(), stored, out);
    } else {
      auto bytes = scratch.take(static_cast<size_t>(rows * whole_width));
      unpack_elements(input().dtype(), stored, bytes);
      copy_runs(out.data(), width, bytes.data() + (box.start.back() - whole.start.back()), whole_width, width, rows);
    }
    scratch.release(mark);
    return {};
  }

 private:
  int64_t unit_;  // elements in a byte
};

// ---- Elements of the last dim by index ----

std::vector<int64_t> gathered_shape(const TensorSource& source, const TensorSource& indices) {
  std::vector<int64_t> shape(source.shape().begin(), source.shape().end());
  shape.back() = indices.elements();
  return shape;
}

class GatherSource final : public DerivedSource {
 public:
  GatherSource(const TensorSourcePtr& source, const TensorSourcePtr& indices)
      : DerivedSource(SourceKind::kComputed, source->dtype(), gathered_shape(*source, *indices), {source, indices}) {}

  std::string recipe() const override { return format("gather({}, {})", input().recipe(), indices().recipe()); }

  size_t scratch_for(int64_t elements) const override {
    size_t numbers = saturating_add(scratch_cost(indices().dtype(), elements), scratch_cost(DType::kI64, elements));
    int64_t rows = std::max(elements, input().shape().back());
    size_t values = saturating_add(scratch_cost(dtype(), rows), input().scratch_for(rows));
    return saturating_add(numbers, std::max(values, indices().scratch_for(elements)));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    size_t mark = scratch.mark();
    int64_t width = box.extent.back(), total = box_elements(box), from = input().shape().back();
    auto raw = scratch.take(static_cast<size_t>(bytes_of(indices().dtype(), width)));
    auto numbers = scratch.take(static_cast<size_t>(width) * sizeof(int64_t));
    ARGOSY_TRY_STATUS(indices().read({{box.start.back()}, {width}}, raw, scratch));
    if (indices().dtype() == DType::kI64) {
      std::ranges::copy(raw, numbers.begin());
    } else {
      cast_elements(indices().dtype(), raw, DType::kI64, numbers);
    }
    std::span<const int64_t> chosen(reinterpret_cast<const int64_t*>(numbers.data()), static_cast<size_t>(width));
    ARGOSY_TRY_STATUS(check_indices(chosen, from));
    // Whole rows of the source, as many at a time as the result has elements.
    int64_t most_rows = std::max<int64_t>(1, total / from);
    std::byte* next = out.data();
    Status status = for_each_part(rows_of(box), most_rows, [&](Box whole, int64_t step) -> Status {
      whole.start.push_back(0);
      whole.extent.push_back(from);
      size_t inner = scratch.mark();
      auto values = scratch.take(static_cast<size_t>(bytes_of(dtype(), step * from)));
      ARGOSY_TRY_STATUS(input().read(whole, values, scratch));
      next = pick(values.data(), step, from, chosen, next);
      scratch.release(inner);
      return {};
    });
    scratch.release(mark);
    return status;
  }

 private:
  const TensorSource& indices() const { return *inputs()[1]; }

  Status check_indices(std::span<const int64_t> chosen, int64_t count) const {
    auto wrong = std::ranges::find_if(chosen, [&](int64_t index) { return index < 0 || index >= count; });
    if (wrong == chosen.end()) return {};
    return fail(ErrorCode::kCorruptFile,
                format("index {} of {} is out of range: there are {}", *wrong, quoted(indices().recipe()), count),
                "the checkpoint is damaged, or its quantization_config belongs to another");
  }

  std::byte* pick(const std::byte* values, int64_t rows, int64_t from, std::span<const int64_t> chosen,
                  std::byte* next) const {
    switch (bits_of(dtype())) {
      case 8: return pick_elements<uint8_t>(values, rows, from, chosen, next);
      case 16: return pick_elements<uint16_t>(values, rows, from, chosen, next);
      case 32: return pick_elements<uint32_t>(values, rows, from, chosen, next);
      default: return pick_elements<uint64_t>(values, rows, from, chosen, next);
    }
  }

  template <class Element>
  static std::byte* pick_elements(const std::byte* values, int64_t rows, int64_t from, std::span<const int64_t> chosen,
                                  std::byte* next) {
    for (int64_t row = 0; row < rows; ++row, values += from * static_cast<int64_t>(sizeof(Element))) {
      for (int64_t index : chosen) {
        std::memcpy(next, values + index * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
        next += sizeof(Element);
      }
    }
    return next;
  }
};

}  // namespace

Result<TensorSourcePtr> reinterpreted(TensorSourcePtr source, DType dtype) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  if (source->dtype() == dtype) return source;
  int from = bits_of(source->dtype()), to = bits_of(dtype);
  if (from % 8 != 0 || to > from || from % to != 0) {
    return fail(
        ErrorCode::kUnsupportedFeature,
        format("cannot take the bits of {} as {}", tensor_text(source->dtype(), source->shape()), to_text(dtype)),
        "elements are whole bytes, and become elements of the same size or a part of it");
  }
  int64_t parts = from / to;
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, with_parts(source->shape(), parts)));
  return std::make_shared<ReinterpretSource>(std::move(source), dtype, parts);
}

Result<TensorSourcePtr> unpacked(TensorSourcePtr source, DType dtype) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&source, 1}));
  if (!can_unpack(source->dtype(), dtype) || source->shape().empty()) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("cannot unpack {} to {}", tensor_text(source->dtype(), source->shape()), to_text(dtype)),
                "u2 and u4 become u8, i2 and i4 become i8, f4e2m1 becomes f8e4m3fn");
  }
  ARGOSY_TRY_STATUS(checked_tensor_bytes(dtype, source->shape()));
  return std::make_shared<UnpackSource>(std::move(source), dtype);
}

Result<TensorSourcePtr> gathered(TensorSourcePtr source, TensorSourcePtr indices) {
  if (indices->dtype() == DType::kU8) return looked_up(source, indices);
  ARGOSY_TRY_STATUS(check_recipe_limits(std::vector{source, indices}));
  int bits = bits_of(source->dtype());
  if (source->shape().empty() || bits < 8 || bits > 64) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("cannot gather from {}", tensor_text(source->dtype(), source->shape())),
                "the source has a last dim, and elements of 1 to 8 bytes");
  }
  bool are_numbers = indices->dtype() == DType::kI32 || indices->dtype() == DType::kI64;
  if (!are_numbers || indices->shape().size() != 1) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot gather by {}", tensor_text(indices->dtype(), indices->shape())),
                "indices are i32 or i64 in one dim");
  }
  ARGOSY_TRY_STATUS(checked_tensor_bytes(source->dtype(), gathered_shape(*source, *indices)));
  return std::make_shared<GatherSource>(source, indices);
}

}  // namespace argosy
