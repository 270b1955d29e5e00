#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "tensor/blocks.h"
#include "tensor/box.h"
#include "tensor/float_mode.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// Bytes of blocks that are read at a time, if a row has fewer.
constexpr int64_t kBlockTile = int64_t{1} << 18;
constexpr int64_t kMostBlockValues = 256;

std::vector<int64_t> decoded_shape(std::span<const int64_t> shape, BlockLayout layout) {
  std::vector<int64_t> result(shape.begin(), shape.end());
  result.back() = result.back() / layout.bytes * layout.values;
  return result;
}

class BlockSource final : public DerivedSource {
 public:
  BlockSource(const TensorSourcePtr& bytes, BlockFormat kind)
      : DerivedSource(SourceKind::kComputed, DType::kF32, decoded_shape(bytes->shape(), layout_of(kind)), {bytes}),
        format_(kind),
        layout_(layout_of(kind)) {}

  std::string recipe() const override { return format("blocks({}, {})", input().recipe(), layout_.name); }

  size_t scratch_for(int64_t elements) const override {
    int64_t row = std::min(elements, shape().back());
    int64_t bytes = std::max(kBlockTile, (row / layout_.values + 2) * layout_.bytes);
    return saturating_add(scratch_cost(DType::kU8, bytes), input().scratch_for(bytes));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    DefaultFloatMode mode;
    int64_t width = box.extent.back(), first = box.start.back();
    int64_t begin = first / layout_.values, end = (first + width - 1) / layout_.values + 1;
    int64_t row_bytes = (end - begin) * layout_.bytes, most_rows = std::max<int64_t>(1, kBlockTile / row_bytes);
    std::byte* next = out.data();
    return for_each_part(rows_of(box), most_rows, [&](Box whole, int64_t step) -> Status {
      whole.start.push_back(begin * layout_.bytes);
      whole.extent.push_back(row_bytes);
      size_t mark = scratch.mark();
      auto bytes = scratch.take(static_cast<size_t>(step * row_bytes));
      ARGOSY_TRY_STATUS(input().read(whole, bytes, scratch));
      for (int64_t row = 0; row < step; ++row) {
        next = decode_row(bytes.data() + row * row_bytes, first - begin * layout_.values, width, next);
      }
      scratch.release(mark);
      return {};
    });
  }

 private:
  /// `width` values from the `skipped`th on; where the next row goes.
  std::byte* decode_row(const std::byte* blocks, int64_t skipped, int64_t width, std::byte* out) const {
    float values[kMostBlockValues];
    for (; width > 0; blocks += layout_.bytes, skipped = 0) {
      decode_block(format_, blocks, values);
      int64_t count = std::min(width, layout_.values - skipped);
      auto bytes = static_cast<size_t>(count) * sizeof(float);
      std::memcpy(out, values + skipped, bytes);
      out += bytes;
      width -= count;
    }
    return out;
  }

  BlockFormat format_;
  BlockLayout layout_;
};

}  // namespace

Result<TensorSourcePtr> blocks_decoded(const TensorSourcePtr& bytes, BlockFormat kind) {
  ARGOSY_TRY_STATUS(check_recipe_limits({&bytes, 1}));
  BlockLayout layout = layout_of(kind);
  bool fits = kind != BlockFormat::kNone && bytes->dtype() == DType::kU8 && !bytes->shape().empty() &&
              bytes->shape().back() % layout.bytes == 0;
  if (!fits) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot take {} as blocks {}", tensor_text(bytes->dtype(), bytes->shape()), layout.name),
                "rows are whole blocks of bytes");
  }
  ARGOSY_TRY_STATUS(checked_tensor_bytes(DType::kF32, decoded_shape(bytes->shape(), layout)));
  return std::make_shared<BlockSource>(bytes, kind);
}

}  // namespace argosy
