#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace argosy::executorch {

// Both kinds of files are a flatbuffer with a header inserted after its first eight bytes, which says where the data
// after it begins. Numbers are little-endian.

/// A program's flatbuffer with its header; padded to where segments begin, if there are any.
std::string with_program_header(std::string_view flatbuffer, bool has_segments, uint64_t data_size);
/// That of a .ptd file.
std::string with_data_header(std::string_view flatbuffer, uint64_t data_size);

/// What a header says. `flatbuffer_size` counts from the beginning of the file.
struct ExtendedHeader {
  uint64_t flatbuffer_size = 0;
  uint64_t segments_begin = 0;  // 0: there are none
  uint64_t data_size = 0;
};
/// Of the first bytes of a .pte file (kHeaderBytes suffice); nullopt if it has no such header.
std::optional<ExtendedHeader> program_header(std::string_view bytes);
inline constexpr size_t kHeaderBytes = 64;

}  // namespace argosy::executorch
