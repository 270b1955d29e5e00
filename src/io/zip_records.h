#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy::zip {

/// An entry of a zip file that is being written.
struct Record {
  std::string name;
  uint64_t header_offset = 0, size = 0;
  uint32_t crc = 0;
  bool is_streamed = false;  // its CRC is known after its bytes, and follows them in a descriptor
};

/// The local header, padded so that the bytes after it begin at a multiple of 64. Without the CRC of a streamed entry.
std::string local_header(const Record& record);
/// What follows the bytes of a streamed entry.
std::string descriptor(const Record& record);
uint64_t descriptor_size(uint64_t size);
/// The directory and the end of the file, from `offset` on.
std::string directory(std::span<const Record> records, uint64_t offset);

/// Takes the names of a file's entries and refuses those that a reader would: unsafe ones and doubles.
class NameCheck {
 public:
  Status add(std::string_view name);

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace argosy::zip
