#include <zlib.h>

#include "base/check.h"
#include "base/text.h"
#include "io/zip.h"
#include "io/zip_format.h"

namespace argosy {
namespace {

using zip::store;

constexpr uint16_t kDosDate = (1 << 5) | 1;  // 1 January 1980, the first that the format can say
constexpr uint16_t kVersion = 20, kVersion64 = 45;

uint32_t add_to_crc(uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

uint32_t narrow(uint64_t value) { return value >= zip::kFull32 ? zip::kFull32 : static_cast<uint32_t>(value); }

}  // namespace

ZipWriter::ZipWriter(ByteSink sink) : sink_(std::move(sink)) {}

Status ZipWriter::write(std::string_view bytes) {
  ARGOSY_TRY_STATUS(sink_(std::as_bytes(std::span(bytes))));
  position_ += bytes.size();
  return {};
}

Status ZipWriter::begin_entry(std::string_view name, uint64_t size, uint32_t crc, uint16_t flags) {
  if (auto problem = problem_of_entry_name(name); !problem.empty()) {
    return fail(ErrorCode::kInvalidInput, format("cannot write a zip entry: its name {} {}", quoted(name), problem));
  }
  if (!names_.emplace(name).second) {
    return fail(ErrorCode::kInvalidInput, format("cannot write two zip entries of one name, {}", quoted(name)));
  }
  bool is_wide = size >= zip::kFull32;
  bool is_streamed = (flags & zip::kFlagDescriptor) != 0;
  uint64_t known_size = is_streamed ? 0 : size;  // as the format asks; the descriptor has it
  written_.push_back({std::string(name), position_, size, crc, flags});

  std::string header;
  store<uint32_t>(header, zip::kLocalSignature);
  store<uint16_t>(header, is_wide ? kVersion64 : kVersion);
  store<uint16_t>(header, flags);
  store<uint16_t>(header, 0);  // stored
  store<uint16_t>(header, 0);  // time
  store<uint16_t>(header, kDosDate);
  store<uint32_t>(header, is_streamed ? 0 : crc);
  store<uint32_t>(header, is_wide ? zip::kFull32 : static_cast<uint32_t>(known_size));
  store<uint32_t>(header, is_wide ? zip::kFull32 : static_cast<uint32_t>(known_size));
  store<uint16_t>(header, static_cast<uint16_t>(name.size()));
  uint64_t wide_size = is_wide ? 20 : 0;
  uint64_t unpadded = position_ + zip::kLocalSize + name.size() + wide_size + 4;
  uint64_t padding = (zip::kAlignment - unpadded % zip::kAlignment) % zip::kAlignment;
  store<uint16_t>(header, static_cast<uint16_t>(wide_size + 4 + padding));
  header += name;
  if (is_wide) {
    store<uint16_t>(header, zip::kExtra64);
    store<uint16_t>(header, 16);
    store<uint64_t>(header, known_size);
    store<uint64_t>(header, known_size);
  }
  store<uint16_t>(header, zip::kExtraPadding);
  store<uint16_t>(header, static_cast<uint16_t>(padding));
  header.append(padding, 'Z');
  return write(header);
}

Status ZipWriter::add(std::string_view name, std::string_view bytes) {
  uint32_t crc = add_to_crc(0, std::as_bytes(std::span(bytes)));
  ARGOSY_TRY_STATUS(begin_entry(name, bytes.size(), crc, zip::kFlagUtf8));
  return write(bytes);
}

Status ZipWriter::add(std::string_view name, const TensorSource& source, size_t scratch_bytes) {
  auto size = static_cast<uint64_t>(source.bytes());
  ARGOSY_TRY_STATUS(begin_entry(name, size, 0, zip::kFlagUtf8 | zip::kFlagDescriptor));
  uint32_t crc = 0;
  uint64_t start = position_;
  ARGOSY_TRY_STATUS(source.stream_to(
      [&](std::span<const std::byte> bytes) -> Status {
        crc = add_to_crc(crc, bytes);
        position_ += bytes.size();
        return sink_(bytes);
      },
      scratch_bytes));
  ARGOSY_CHECK(position_ - start == size, "a source streamed another number of bytes than it has: " + source.recipe());
  written_.back().crc = crc;
  std::string descriptor;
  store<uint32_t>(descriptor, zip::kDescriptorSignature);
  store<uint32_t>(descriptor, crc);
  for (int i = 0; i < 2; ++i) {
    if (size >= zip::kFull32) {
      store<uint64_t>(descriptor, size);
    } else {
      store<uint32_t>(descriptor, static_cast<uint32_t>(size));
    }
  }
  return write(descriptor);
}

Status ZipWriter::finish() {
  uint64_t directory_offset = position_;
  std::string directory;
  for (const Written& entry : written_) {
    std::string wide;
    if (entry.size >= zip::kFull32) {
      store<uint64_t>(wide, entry.size);
      store<uint64_t>(wide, entry.size);
    }
    if (entry.header_offset >= zip::kFull32) store<uint64_t>(wide, entry.header_offset);
    store<uint32_t>(directory, zip::kCentralSignature);
    store<uint16_t>(directory, wide.empty() ? kVersion : kVersion64);
    store<uint16_t>(directory, wide.empty() ? kVersion : kVersion64);
    store<uint16_t>(directory, entry.flags);
    store<uint16_t>(directory, 0);  // stored
    store<uint16_t>(directory, 0);  // time
    store<uint16_t>(directory, kDosDate);
    store<uint32_t>(directory, entry.crc);
    store<uint32_t>(directory, narrow(entry.size));
    store<uint32_t>(directory, narrow(entry.size));
    store<uint16_t>(directory, static_cast<uint16_t>(entry.name.size()));
    store<uint16_t>(directory, static_cast<uint16_t>(wide.empty() ? 0 : wide.size() + 4));
    store<uint16_t>(directory, 0);  // comment
    store<uint16_t>(directory, 0);  // disk
    store<uint16_t>(directory, 0);  // internal attributes
    store<uint32_t>(directory, 0);  // external attributes
    store<uint32_t>(directory, narrow(entry.header_offset));
    directory += entry.name;
    if (!wide.empty()) {
      store<uint16_t>(directory, zip::kExtra64);
      store<uint16_t>(directory, static_cast<uint16_t>(wide.size()));
      directory += wide;
    }
  }
  uint64_t count = written_.size(), directory_size = directory.size();
  std::string end;
  if (count >= zip::kFull16 || directory_offset >= zip::kFull32 || directory_size >= zip::kFull32) {
    store<uint32_t>(end, zip::kEnd64Signature);
    store<uint64_t>(end, zip::kEnd64Size - 12);  // of what follows this field
    store<uint16_t>(end, kVersion64);
    store<uint16_t>(end, kVersion64);
    store<uint32_t>(end, 0);
    store<uint32_t>(end, 0);
    store<uint64_t>(end, count);
    store<uint64_t>(end, count);
    store<uint64_t>(end, directory_size);
    store<uint64_t>(end, directory_offset);
    store<uint32_t>(end, zip::kLocator64Signature);
    store<uint32_t>(end, 0);
    store<uint64_t>(end, directory_offset + directory_size);
    store<uint32_t>(end, 1);
  }
  auto narrow_count = static_cast<uint16_t>(count >= zip::kFull16 ? zip::kFull16 : count);
  store<uint32_t>(end, zip::kEndSignature);
  store<uint32_t>(end, 0);  // disks
  store<uint16_t>(end, narrow_count);
  store<uint16_t>(end, narrow_count);
  store<uint32_t>(end, narrow(directory_size));
  store<uint32_t>(end, narrow(directory_offset));
  store<uint16_t>(end, 0);  // comment
  ARGOSY_TRY_STATUS(write(directory));
  return write(end);
}

}  // namespace argosy
