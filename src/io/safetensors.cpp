#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/checked_math.h"
#include "base/text.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr uint64_t kPrefix = 8;  // the header's length, little-endian

constexpr const char* kDownloadAgain = "the file is damaged or incomplete; download or write it again";

class HeaderParser {
 public:
  HeaderParser(uint64_t header_size, uint64_t file_size, std::string_view file_name)
      : data_start_(kPrefix + header_size), data_size_(file_size - data_start_), file_name_(file_name) {}

  Result<SafetensorsHeader> parse(JsonView root) {
    SafetensorsHeader header;
    header.tensors.reserve(root.size());
    for (auto [name, value] : root.members()) {
      if (name == "__metadata__") {
        if (has_metadata_) return corrupt("it has __metadata__ twice");
        has_metadata_ = true;
        ARGOSY_TRY_STATUS(read_metadata(value, header));
        continue;
      }
      if (name.empty()) return corrupt("a tensor has an empty name");
      SafetensorsEntry entry;
      entry.name = name;
      ARGOSY_TRY_STATUS(read_entry(value, entry));
      header.tensors.push_back(std::move(entry));
    }
    ARGOSY_TRY_STATUS(check_names(header));
    ARGOSY_TRY_STATUS(check_layout(header));
    return header;
  }

 private:
  tl::unexpected<Error> corrupt(const std::string& why, std::string hint = kDownloadAgain) const {
    return fail(ErrorCode::kCorruptFile, format("{} is not a usable safetensors file: {}", file_name_, why),
                std::move(hint));
  }
  tl::unexpected<Error> corrupt(const SafetensorsEntry& entry, std::string_view why) const {
    return corrupt(format("tensor {} {}", quoted(entry.name), why));
  }

  Status read_metadata(JsonView value, SafetensorsHeader& header) const {
    if (!value.is_object()) return corrupt("its __metadata__ is not an object");
    for (auto [key, text] : value.members()) {
      auto string = text.as_string();
      if (!string) return corrupt(format("the value of {} in its __metadata__ is not text", quoted(key)));
      header.metadata.emplace_back(key, *string);
    }
    std::sort(header.metadata.begin(), header.metadata.end());
    for (size_t i = 1; i < header.metadata.size(); ++i) {
      if (header.metadata[i - 1].first == header.metadata[i].first) {
        return corrupt(format("its __metadata__ has {} twice", quoted(header.metadata[i].first)));
      }
    }
    return {};
  }

  Status read_entry(JsonView value, SafetensorsEntry& entry) const {
    if (!value.is_object()) return corrupt(entry, "is not described by an object");
    JsonView dtype, shape, offsets;
    for (auto [key, field] : value.members()) {
      JsonView* slot = key == "dtype" ? &dtype : key == "shape" ? &shape : key == "data_offsets" ? &offsets : nullptr;
      if (slot == nullptr) continue;
      if (slot->is_valid()) return corrupt(entry, format("has {} twice", key));
      *slot = field;
    }
    ARGOSY_TRY_STATUS(read_dtype(dtype, entry));
    ARGOSY_TRY_STATUS(read_shape(shape, entry));
    return read_offsets(offsets, entry);
  }

  Status read_dtype(JsonView value, SafetensorsEntry& entry) const {
    auto name = value.as_string();
    if (!name) return corrupt(entry, "has no dtype");
    auto dtype = dtype_from_safetensors(*name);
    if (!dtype) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("{}: tensor {} has the unknown dtype {}", file_name_, quoted(entry.name), quoted(*name)),
                  "the file is damaged, or newer than this program");
    }
    entry.dtype = *dtype;
    return {};
  }

  Status read_shape(JsonView value, SafetensorsEntry& entry) const {
    if (!value.is_array()) return corrupt(entry, "has no shape");
    entry.shape.reserve(value.size());
    for (JsonView item : value.items()) {
      auto dim = item.as_integer();
      if (!dim) return corrupt(entry, "has a dim that is not an integer of 64 bits");
      if (*dim < 0) return corrupt(entry, format("has the negative dim {}", *dim));
      entry.shape.push_back(*dim);
    }
    return {};
  }

  Status read_offsets(JsonView value, SafetensorsEntry& entry) const {
    if (!value.is_array() || value.size() != 2) return corrupt(entry, "has no data_offsets of two numbers");
    auto it = value.items().begin();
    auto begin = (*it).as_unsigned();
    auto end = (*++it).as_unsigned();
    if (!begin || !end) return corrupt(entry, "has data_offsets that are not unsigned integers of 64 bits");
    if (*end < *begin) return corrupt(entry, format("ends at byte {}, before it begins at byte {}", *end, *begin));
    auto count = element_count(entry.shape);
    auto bytes = count ? packed_bytes(entry.dtype, *count) : std::nullopt;
    if (!count || (!bytes && bits_of(entry.dtype) >= 8)) return corrupt(entry, "has a shape whose size overflows");
    if (!bytes) {
      return corrupt(entry,
                     format("has {} elements of {} bits, which are not whole bytes", *count, bits_of(entry.dtype)));
    }
    if (*end - *begin != static_cast<uint64_t>(*bytes)) {
      return corrupt(
          entry, format("takes {} bytes by its dtype and shape, but {} by its data_offsets", *bytes, *end - *begin));
    }
    entry.offset = *begin;  // from the start of the data until check_layout
    entry.bytes = *end - *begin;
    return {};
  }

  Status check_names(const SafetensorsHeader& header) const {
    std::vector<std::string_view> names;
    names.reserve(header.tensors.size());
    for (const SafetensorsEntry& entry : header.tensors) names.push_back(entry.name);
    // Writers sort by dtype, then by name: mostly in order already.
    if (!std::is_sorted(names.begin(), names.end())) std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return corrupt(format("it has tensor {} twice", quoted(*twice)));
    return {};
  }

  /// Puts the tensors in the order of their bytes; they must fill the data without gap or overlap.
  Status check_layout(SafetensorsHeader& header) const {
    auto by_offset = [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
    };
    if (!std::is_sorted(header.tensors.begin(), header.tensors.end(), by_offset)) {
      std::sort(header.tensors.begin(), header.tensors.end(), by_offset);
    }
    uint64_t end = 0;
    for (SafetensorsEntry& entry : header.tensors) {
      if (entry.offset < end) {
        return corrupt(
            entry, format("begins at byte {}, inside the tensor before it, which ends at byte {}", entry.offset, end));
      }
      if (entry.offset > end) {
        return corrupt(entry, format("begins at byte {}, but the tensor before it ends at byte {}: bytes between them "
                                     "belong to no tensor",
                                     entry.offset, end));
      }
      end = entry.offset + entry.bytes;
      entry.offset += data_start_;
    }
    if (end > data_size_) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} is truncated: its tensors take {} bytes, of which {} are missing at the end", file_name_,
                         end, end - data_size_),
                  "the download or copy did not complete; get this file again");
    }
    if (end < data_size_) {
      return corrupt(format("{} bytes follow its last tensor and belong to none", data_size_ - end));
    }
    return {};
  }

  uint64_t data_start_;
  uint64_t data_size_;
  std::string_view file_name_;
  bool has_metadata_ = false;
};

}  // namespace

Result<uint64_t> safetensors_header_length(std::span<const std::byte> first_bytes, uint64_t file_size,
                                           std::string_view file_name) {
  if (file_size < kPrefix || first_bytes.size() < kPrefix) {
    return fail(ErrorCode::kCorruptFile,
                format("{} is not a usable safetensors file: it has only {} bytes", file_name, file_size),
                kDownloadAgain);
  }
  uint64_t length;
  std::memcpy(&length, first_bytes.data(), sizeof length);
  if (length > kMaxSafetensorsHeader) {
    return fail(ErrorCode::kCorruptFile,
                format("{} is not a usable safetensors file: it claims a header of {} bytes, more than the {} that the "
                       "format allows",
                       file_name, length, kMaxSafetensorsHeader),
                "it is damaged or is another kind of file; check what it is");
  }
  if (length > file_size - kPrefix) {
    return fail(ErrorCode::kCorruptFile,
                format("{} is truncated: its header alone takes {} bytes, but the file ends after {}", file_name,
                       length, file_size - kPrefix),
                "the download or copy did not complete; get this file again");
  }
  return length;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string text, uint64_t file_size, std::string_view file_name) {
  uint64_t size = text.size();
  std::string name = format("the header of {}", file_name);
  if (text.empty()) {
    return fail(ErrorCode::kCorruptFile, format("{} is empty", name), kDownloadAgain);
  }
  if (text.front() != '{') {
    return fail(ErrorCode::kCorruptFile, format("{} does not begin with a brace", name), kDownloadAgain);
  }
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), name));
  return HeaderParser(size, file_size, file_name).parse(document.root());
}

Result<SafetensorsHeader> read_safetensors_header(const ReadFile& file, std::string_view file_name) {
  std::byte prefix[kPrefix];
  std::span<std::byte> first(prefix, std::min<uint64_t>(kPrefix, file.size()));
  ARGOSY_TRY(ReadFile::Lease lease, file.lease());
  ARGOSY_TRY_STATUS(file.read(lease, 0, first));
  ARGOSY_TRY(uint64_t length, safetensors_header_length(first, file.size(), file_name));
  std::string text(length, '\0');
  ARGOSY_TRY_STATUS(file.read(lease, kPrefix, std::as_writable_bytes(std::span(text))));
  return parse_safetensors_header(std::move(text), file.size(), file_name);
}

}  // namespace argosy
