#include "backends/executorch/extended_header.h"

#include "backends/executorch/encode.h"
#include "base/align.h"
#include "base/check.h"

namespace argosy::executorch {
namespace {

constexpr size_t kPreludeBytes = 8;  // where the root table is, and the format's identifier
constexpr std::string_view kProgramMagic = "eh00", kDataMagic = "FH01";
constexpr uint64_t kProgramHeaderBytes = 32, kDataHeaderBytes = 40;

void append_number(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(number >> (8 * i)));
}

uint64_t number_at(std::string_view bytes, size_t position, int count) {
  uint64_t number = 0;
  for (int i = 0; i < count; ++i) {
    number |= uint64_t{static_cast<unsigned char>(bytes[position + static_cast<size_t>(i)])} << (8 * i);
  }
  return number;
}

/// The header, padded so that what follows keeps its alignment, goes between prelude and tables: the root moves.
std::string inserted(std::string_view flatbuffer, std::string header) {
  header.resize(rounded_up(header.size(), 16));
  std::string file;
  append_number(file, number_at(flatbuffer, 0, 4) + header.size(), 4);
  file += flatbuffer.substr(4, kPreludeBytes - 4);
  file += header;
  file += flatbuffer.substr(kPreludeBytes);
  return file;
}

}  // namespace

std::string with_program_header(std::string_view flatbuffer, bool has_segments, uint64_t data_size) {
  uint64_t program_size = flatbuffer.size() + kProgramHeaderBytes;
  uint64_t begin = has_segments ? rounded_up(program_size, kSegmentAlignment) : 0;
  std::string header(kProgramMagic);
  append_number(header, kProgramHeaderBytes, 4);
  append_number(header, program_size, 8);
  append_number(header, begin, 8);
  append_number(header, data_size, 8);
  ARGOSY_CHECK(header.size() == kProgramHeaderBytes, "the header has another size than it says");
  std::string file = inserted(flatbuffer, std::move(header));
  if (has_segments) file.resize(begin);
  return file;
}

std::string with_data_header(std::string_view flatbuffer, uint64_t data_size) {
  uint64_t padded = rounded_up(kDataHeaderBytes, 16);
  uint64_t begin = rounded_up(flatbuffer.size() + padded, kSegmentAlignment);
  std::string header(kDataMagic);
  append_number(header, kDataHeaderBytes, 4);
  append_number(header, padded, 8);
  append_number(header, flatbuffer.size(), 8);
  append_number(header, begin, 8);
  append_number(header, data_size, 8);
  ARGOSY_CHECK(header.size() == kDataHeaderBytes, "the header has another size than it says");
  std::string file = inserted(flatbuffer, std::move(header));
  file.resize(begin);
  return file;
}

std::optional<ExtendedHeader> program_header(std::string_view bytes) {
  if (bytes.size() < kPreludeBytes + kProgramHeaderBytes) return std::nullopt;
  if (bytes.substr(kPreludeBytes, kProgramMagic.size()) != kProgramMagic) return std::nullopt;
  uint64_t length = number_at(bytes, kPreludeBytes + 4, 4);
  if (length < kProgramHeaderBytes - 8) return std::nullopt;
  ExtendedHeader header{number_at(bytes, kPreludeBytes + 8, 8), number_at(bytes, kPreludeBytes + 16, 8), 0};
  // Older files do not say how much data there is.
  if (length >= kProgramHeaderBytes) header.data_size = number_at(bytes, kPreludeBytes + 24, 8);
  return header;
}

}  // namespace argosy::executorch
