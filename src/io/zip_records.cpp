#include "io/zip_records.h"

#include "base/text.h"
#include "io/zip.h"
#include "io/zip_format.h"

namespace argosy::zip {
namespace {

constexpr uint16_t kDosDate = (1 << 5) | 1;  // 1 January 1980, the first that the format can say
constexpr uint16_t kVersion = 20, kVersion64 = 45;

uint32_t narrow(uint64_t value) { return value >= kFull32 ? kFull32 : static_cast<uint32_t>(value); }

uint16_t flags(const Record& record) {
  return record.is_streamed ? static_cast<uint16_t>(kFlagUtf8 | kFlagDescriptor) : kFlagUtf8;
}

void add_central_header(std::string& directory, const Record& record) {
  std::string wide;
  if (record.size >= kFull32) {
    store<uint64_t>(wide, record.size);
    store<uint64_t>(wide, record.size);
  }
  if (record.header_offset >= kFull32) store<uint64_t>(wide, record.header_offset);
  store<uint32_t>(directory, kCentralSignature);
  store<uint16_t>(directory, wide.empty() ? kVersion : kVersion64);
  store<uint16_t>(directory, wide.empty() ? kVersion : kVersion64);
  store<uint16_t>(directory, flags(record));
  store<uint16_t>(directory, 0);  // stored
  store<uint16_t>(directory, 0);  // time
  store<uint16_t>(directory, kDosDate);
  store<uint32_t>(directory, record.crc);
  store<uint32_t>(directory, narrow(record.size));
  store<uint32_t>(directory, narrow(record.size));
  store<uint16_t>(directory, static_cast<uint16_t>(record.name.size()));
  store<uint16_t>(directory, static_cast<uint16_t>(wide.empty() ? 0 : wide.size() + 4));
  store<uint16_t>(directory, 0);  // comment
  store<uint16_t>(directory, 0);  // disk
  store<uint16_t>(directory, 0);  // internal attributes
  store<uint32_t>(directory, 0);  // external attributes
  store<uint32_t>(directory, narrow(record.header_offset));
  directory += record.name;
  if (!wide.empty()) {
    store<uint16_t>(directory, kExtra64);
    store<uint16_t>(directory, static_cast<uint16_t>(wide.size()));
    directory += wide;
  }
}

void add_end(std::string& out, uint64_t count, uint64_t offset, uint64_t size) {
  if (count >= kFull16 || offset >= kFull32 || size >= kFull32) {
    store<uint32_t>(out, kEnd64Signature);
    store<uint64_t>(out, kEnd64Size - 12);  // of what follows this field
    store<uint16_t>(out, kVersion64);
    store<uint16_t>(out, kVersion64);
    store<uint32_t>(out, 0);
    store<uint32_t>(out, 0);
    store<uint64_t>(out, count);
    store<uint64_t>(out, count);
    store<uint64_t>(out, size);
    store<uint64_t>(out, offset);
    store<uint32_t>(out, kLocator64Signature);
    store<uint32_t>(out, 0);
    store<uint64_t>(out, offset + size);
    store<uint32_t>(out, 1);
  }
  auto narrow_count = static_cast<uint16_t>(count >= kFull16 ? kFull16 : count);
  store<uint32_t>(out, kEndSignature);
  store<uint32_t>(out, 0);  // disks
  store<uint16_t>(out, narrow_count);
  store<uint16_t>(out, narrow_count);
  store<uint32_t>(out, narrow(size));
  store<uint32_t>(out, narrow(offset));
  store<uint16_t>(out, 0);  // comment
}

}  // namespace

std::string local_header(const Record& record) {
  bool is_wide = record.size >= kFull32;
  uint64_t known_size = record.is_streamed ? 0 : record.size;  // as the format asks; the descriptor has it
  std::string header;
  store<uint32_t>(header, kLocalSignature);
  store<uint16_t>(header, is_wide ? kVersion64 : kVersion);
  store<uint16_t>(header, flags(record));
  store<uint16_t>(header, 0);  // stored
  store<uint16_t>(header, 0);  // time
  store<uint16_t>(header, kDosDate);
  store<uint32_t>(header, record.is_streamed ? 0 : record.crc);
  store<uint32_t>(header, is_wide ? kFull32 : static_cast<uint32_t>(known_size));
  store<uint32_t>(header, is_wide ? kFull32 : static_cast<uint32_t>(known_size));
  store<uint16_t>(header, static_cast<uint16_t>(record.name.size()));
  uint64_t wide_size = is_wide ? 20 : 0;
  uint64_t unpadded = record.header_offset + kLocalSize + record.name.size() + wide_size + 4;
  uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  store<uint16_t>(header, static_cast<uint16_t>(wide_size + 4 + padding));
  header += record.name;
  if (is_wide) {
    store<uint16_t>(header, kExtra64);
    store<uint16_t>(header, 16);
    store<uint64_t>(header, known_size);
    store<uint64_t>(header, known_size);
  }
  store<uint16_t>(header, kExtraPadding);
  store<uint16_t>(header, static_cast<uint16_t>(padding));
  header.append(padding, 'Z');
  return header;
}

uint64_t descriptor_size(uint64_t size) { return size >= kFull32 ? 24 : 16; }

std::string descriptor(const Record& record) {
  std::string text;
  store<uint32_t>(text, kDescriptorSignature);
  store<uint32_t>(text, record.crc);
  for (int i = 0; i < 2; ++i) {
    if (record.size >= kFull32) {
      store<uint64_t>(text, record.size);
    } else {
      store<uint32_t>(text, static_cast<uint32_t>(record.size));
    }
  }
  return text;
}

std::string directory(std::span<const Record> records, uint64_t offset) {
  std::string text;
  for (const Record& record : records) add_central_header(text, record);
  add_end(text, records.size(), offset, text.size());
  return text;
}

Status NameCheck::add(std::string_view name) {
  if (auto problem = problem_of_entry_name(name); !problem.empty()) {
    return fail(ErrorCode::kInvalidInput, format("cannot write a zip entry: its name {} {}", quoted(name), problem));
  }
  if (!names_.emplace(name).second) {
    return fail(ErrorCode::kInvalidInput, format("cannot write two zip entries of one name, {}", quoted(name)));
  }
  return {};
}

}  // namespace argosy::zip
