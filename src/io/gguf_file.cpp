#include "io/gguf_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/checked_math.h"
#include "base/text.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxGgufName = 1024;
constexpr uint64_t kMaxGgufTensors = uint64_t{1} << 20;  // and as many entries of metadata
constexpr uint64_t kMaxGgufItems = uint64_t{1} << 24;    // of an array: vocabularies have some 100,000
constexpr uint64_t kMaxGgufRank = 8;
constexpr int kMaxGgufNesting = 8;
constexpr uint64_t kGgufWindow = uint64_t{1} << 18;

struct GgufType {
  uint32_t number;
  std::string_view name;
  std::optional<DType> dtype;  // none: blocks, or not read
  BlockFormat format = BlockFormat::kNone;
};
constexpr std::array<GgufType, 24> kGgufTypes = {{
    {0, "F32", DType::kF32},
    {1, "F16", DType::kF16},
    {2, "Q4_0", {}, BlockFormat::kQ40},
    {3, "Q4_1", {}, BlockFormat::kQ41},
    {6, "Q5_0", {}, BlockFormat::kQ50},
    {7, "Q5_1", {}, BlockFormat::kQ51},
    {8, "Q8_0", {}, BlockFormat::kQ80},
    {10, "Q2_K", {}},
    {11, "Q3_K", {}},
    {12, "Q4_K", {}, BlockFormat::kQ4K},
    {13, "Q5_K", {}, BlockFormat::kQ5K},
    {14, "Q6_K", {}, BlockFormat::kQ6K},
    {15, "Q8_K", {}},
    {20, "IQ4_NL", {}},
    {23, "IQ4_XS", {}},
    {24, "I8", DType::kI8},
    {25, "I16", DType::kI16},
    {26, "I32", DType::kI32},
    {27, "I64", DType::kI64},
    {28, "F64", DType::kF64},
    {30, "BF16", DType::kBF16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", {}},
}};

class GgufReader {
 public:
  GgufReader(const ReadFile& file, std::string_view file_name) : file_(file), file_name_(file_name) {}

  Result<std::vector<GgufEntry>> read() {
    static_assert(std::endian::native == std::endian::little);
    ARGOSY_TRY(auto magic, number<uint32_t>());
    if (magic != 0x46554747) return corrupt("it does not begin with GGUF");
    ARGOSY_TRY(auto version, number<uint32_t>());
    if (version != 2 && version != 3) {
      return fail(ErrorCode::kUnsupportedVersion,
                  format("{} has version {} of GGUF (or another byte order); 2 and 3 are read", file_name_, version),
                  "convert it with a current llama.cpp");
    }
    ARGOSY_TRY(auto tensor_count, number<uint64_t>());
    ARGOSY_TRY(auto metadata_count, number<uint64_t>());
    if (tensor_count > kMaxGgufTensors || metadata_count > kMaxGgufTensors) {
      return corrupt(format("it claims {} tensors and {} entries of metadata", tensor_count, metadata_count));
    }
    for (uint64_t i = 0; i < metadata_count; ++i) ARGOSY_TRY_STATUS(read_metadata());
    std::vector<GgufEntry> entries;
    for (uint64_t i = 0; i < tensor_count; ++i) {
      ARGOSY_TRY(GgufEntry entry, read_entry());
      entries.push_back(std::move(entry));
    }
    uint64_t data = (position_ + alignment_ - 1) / alignment_ * alignment_;
    for (GgufEntry& entry : entries) {
      if (data > file_.size() || entry.offset > file_.size() - data ||
          entry.bytes > file_.size() - data - entry.offset) {
        return corrupt(format("tensor {} of {} bytes at byte {} of its data lies outside the file of {} bytes",
                              quoted(entry.name), entry.bytes, entry.offset, file_.size()));
      }
      entry.offset += data;
    }
    std::ranges::sort(entries, {}, &GgufEntry::name);
    auto twice = std::ranges::adjacent_find(entries, {}, &GgufEntry::name);
    if (twice != entries.end()) return corrupt(format("it has tensor {} twice", quoted(twice->name)));
    return entries;
  }

 private:
  tl::unexpected<Error> corrupt(std::string_view why) const {
    return fail(ErrorCode::kCorruptFile, format("{} is not a usable GGUF file: {}", file_name_, why),
                "the file is damaged or incomplete; download or write it again");
  }

  // ---- what precedes the tensors, read through a window ----

  Status read_bytes(std::span<std::byte> out) {
    if (out.size() > file_.size() - position_) return corrupt("it ends early");
    while (!out.empty()) {
      if (position_ < window_start_ || position_ >= window_start_ + window_.size()) {
        window_.resize(std::min(kGgufWindow, file_.size() - position_));
        window_start_ = position_;
        ARGOSY_TRY_STATUS(file_.read(position_, window_));
      }
      size_t at = position_ - window_start_, count = std::min(out.size(), window_.size() - at);
      std::memcpy(out.data(), window_.data() + at, count);
      out = out.subspan(count);
      position_ += count;
    }
    return {};
  }

  template <class T>
  Result<T> number() {
    T value;
    ARGOSY_TRY_STATUS(read_bytes(std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

  Status skip(uint64_t count) {
    if (count > file_.size() - position_) return corrupt("it ends early");
    position_ += count;
    return {};
  }

  Result<std::string> name() {
    ARGOSY_TRY(auto length, number<uint64_t>());
    if (length > kMaxGgufName) return corrupt(format("a name of {} bytes", length));
    std::string text(length, '\0');
    ARGOSY_TRY_STATUS(read_bytes(std::as_writable_bytes(std::span(text))));
    if (!is_utf8(text)) return corrupt("a name is not UTF-8");
    return text;
  }

  Status read_metadata() {
    ARGOSY_TRY(std::string key, name());
    ARGOSY_TRY(auto type, number<uint32_t>());
    if (key == "general.alignment" && type == 4) {
      ARGOSY_TRY(auto alignment, number<uint32_t>());
      if (alignment == 0 || alignment % 8 != 0) return corrupt(format("an alignment of {}", alignment));
      alignment_ = alignment;
      return {};
    }
    return skip_value(type, 0);
  }

  Status skip_value(uint32_t type, int nesting) {
    constexpr uint32_t kText = 8, kArray = 9;
    // u8, i8, u16, i16, u32, i32, f32, bool, text, array, u64, i64, f64
    constexpr std::array<uint64_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type >= kSizes.size()) return corrupt(format("metadata of type {}", type));
    if (type == kText) {
      ARGOSY_TRY(auto length, number<uint64_t>());
      return skip(length);
    }
    if (type != kArray) return skip(kSizes[type]);
    if (nesting == kMaxGgufNesting) return corrupt("its metadata is nested too deeply");
    ARGOSY_TRY(auto item_type, number<uint32_t>());
    ARGOSY_TRY(auto count, number<uint64_t>());
    if (count > kMaxGgufItems) return corrupt(format("an array of {} items", count));
    if (item_type < kSizes.size() && kSizes[item_type] != 0) return skip(count * kSizes[item_type]);
    for (uint64_t i = 0; i < count; ++i) ARGOSY_TRY_STATUS(skip_value(item_type, nesting + 1));
    return {};
  }

  Result<GgufEntry> read_entry() {
    GgufEntry entry;
    ARGOSY_TRY(entry.name, name());
    if (entry.name.empty()) return corrupt("a tensor has an empty name");
    ARGOSY_TRY(auto rank, number<uint32_t>());
    if (rank > kMaxGgufRank) return corrupt(format("tensor {} has {} dims", quoted(entry.name), rank));
    for (uint32_t i = 0; i < rank; ++i) {
      ARGOSY_TRY(auto size, number<int64_t>());
      entry.shape.insert(entry.shape.begin(), size);
    }
    ARGOSY_TRY(auto type_number, number<uint32_t>());
    ARGOSY_TRY(entry.offset, number<uint64_t>());
    auto type = std::ranges::find(kGgufTypes, type_number, &GgufType::number);
    bool is_read = type != kGgufTypes.end() && (type->dtype || type->format != BlockFormat::kNone);
    if (!is_read) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("{}: tensor {} has the type {}, which is not read", file_name_, quoted(entry.name),
                         type != kGgufTypes.end() ? std::string(type->name) : format("number {}", type_number)),
                  "give a file of other types: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K");
    }
    entry.format = type->format;
    entry.dtype = type->dtype.value_or(DType::kF32);
    BlockLayout layout = layout_of(entry.format);
    auto count = element_count(entry.shape);
    if (!count || (!entry.shape.empty() && entry.shape.back() % layout.values != 0) ||
        (entry.shape.empty() && layout.values != 1)) {
      return corrupt(format("tensor {} has a shape that is negative, overflows, or is no whole number of blocks",
                            quoted(entry.name)));
    }
    int64_t unit = type->dtype ? bits_of(*type->dtype) / 8 : layout.bytes;
    auto bytes = checked_mul(*count / layout.values, unit);
    if (!bytes) return corrupt(format("tensor {} has a size that overflows", quoted(entry.name)));
    entry.bytes = static_cast<uint64_t>(*bytes);
    return entry;
  }

  const ReadFile& file_;
  std::string_view file_name_;
  uint64_t position_ = 0, alignment_ = 32, window_start_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace

Result<std::vector<GgufEntry>> read_gguf_file(const ReadFile& file, std::string_view file_name) {
  return GgufReader(file, file_name).read();
}

}  // namespace argosy
