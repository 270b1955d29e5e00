#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "tensor/box.h"
#include "tensor/dequantize.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

// Codes that are read at a time.
constexpr int64_t kLookupTile = int64_t{1} << 16;
constexpr int64_t kMaxLookupTable = 256;

template <class Element>
void look_up(std::span<const std::byte> table, std::span<const std::byte> codes, std::byte* out) {
  Element values[kMaxLookupTable];
  std::memcpy(values, table.data(), table.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(out + i * sizeof(Element), &values[static_cast<uint8_t>(codes[i])], sizeof(Element));
  }
}

class LookupSource final : public DerivedSource {
 public:
  LookupSource(const TensorSourcePtr& table, const TensorSourcePtr& codes)
      : DerivedSource(SourceKind::kComputed, table->dtype(), {codes->shape().begin(), codes->shape().end()},
                      {table, codes}) {}

  std::string recipe() const override { return format("gather({}, {})", input().recipe(), codes().recipe()); }

  size_t scratch_for(int64_t elements) const override {
    int64_t count = std::min(elements, kLookupTile), size = input().elements();
    size_t table = scratch_cost(dtype(), size), bytes = scratch_cost(DType::kU8, count);
    return saturating_add(table,
                          std::max(input().scratch_for(size), saturating_add(bytes, codes().scratch_for(count))));
  }

  Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const override {
    check_read(*this, box, out.size());
    if (out.empty()) return {};
    size_t mark = scratch.mark();
    auto table = scratch.take(static_cast<size_t>(input().bytes()));
    ARGOSY_TRY_STATUS(input().read({{0}, {input().elements()}}, table, scratch));
    auto bytes = scratch.take(static_cast<size_t>(std::min(box.extent[0], kLookupTile)));
    for (int64_t done = 0; done < box.extent[0];) {
      int64_t count = std::min(box.extent[0] - done, kLookupTile);
      auto part = bytes.first(static_cast<size_t>(count));
      ARGOSY_TRY_STATUS(codes().read({{box.start[0] + done}, {count}}, part, scratch));
      ARGOSY_TRY_STATUS(check_codes(part));
      look_up_all(table, part, out.data() + bytes_of(dtype(), done));
      done += count;
    }
    scratch.release(mark);
    return {};
  }

 private:
  const TensorSource& codes() const { return *inputs()[1]; }

  Status check_codes(std::span<const std::byte> part) const {
    if (input().elements() == kMaxLookupTable) return {};
    std::byte most = *std::ranges::max_element(part);
    if (static_cast<int64_t>(most) < input().elements()) return {};
    return fail(ErrorCode::kCorruptFile,
                format("index {} of {} is out of range: there are {}", static_cast<int>(most), quoted(codes().recipe()),
                       input().elements()),
                "the checkpoint is damaged, or its quantization_config belongs to another");
  }

  void look_up_all(std::span<const std::byte> table, std::span<const std::byte> part, std::byte* out) const {
    switch (bits_of(dtype())) {
      case 8: return look_up<uint8_t>(table, part, out);
      case 16: return look_up<uint16_t>(table, part, out);
      case 32: return look_up<uint32_t>(table, part, out);
      default: return look_up<uint64_t>(table, part, out);
    }
  }
};

}  // namespace

Result<TensorSourcePtr> looked_up(const TensorSourcePtr& table, const TensorSourcePtr& codes) {
  ARGOSY_TRY_STATUS(check_recipe_limits(std::vector{table, codes}));
  int bits = bits_of(table->dtype());
  bool is_table = table->shape().size() == 1 && bits >= 8 && bits <= 64 && table->elements() <= kMaxLookupTable;
  if (!is_table || codes->dtype() != DType::kU8 || codes->shape().size() != 1) {
    return fail(ErrorCode::kInvalidInput,
                format("cannot look {} up in {}", tensor_text(codes->dtype(), codes->shape()),
                       tensor_text(table->dtype(), table->shape())),
                "a table has one dim of at most 256 elements, and its indices are u8 in one dim");
  }
  ARGOSY_TRY_STATUS(checked_tensor_bytes(table->dtype(), codes->shape()));
  return std::make_shared<LookupSource>(table, codes);
}

}  // namespace argosy
