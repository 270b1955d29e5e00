#include "base/check.h"
#include "io/crc32.h"
#include "io/zip.h"

namespace argosy {

ZipWriter::ZipWriter(ByteSink sink) : sink_(std::move(sink)) {}

Status ZipWriter::write(std::string_view bytes) {
  ARGOSY_TRY_STATUS(sink_(std::as_bytes(std::span(bytes))));
  position_ += bytes.size();
  return {};
}

Status ZipWriter::begin_entry(zip::Record record) {
  ARGOSY_TRY_STATUS(names_.add(record.name));
  record.header_offset = position_;
  records_.push_back(std::move(record));
  return write(zip::local_header(records_.back()));
}

Status ZipWriter::add(std::string_view name, std::string_view bytes) {
  uint32_t crc = crc32(0, std::as_bytes(std::span(bytes)));
  ARGOSY_TRY_STATUS(begin_entry({std::string(name), 0, bytes.size(), crc, false}));
  return write(bytes);
}

Status ZipWriter::add(std::string_view name, const TensorSource& source, size_t scratch_bytes) {
  auto size = static_cast<uint64_t>(source.bytes());
  ARGOSY_TRY_STATUS(begin_entry({std::string(name), 0, size, 0, true}));
  uint32_t crc = 0;
  uint64_t start = position_;
  ARGOSY_TRY_STATUS(source.stream_to(
      [&](std::span<const std::byte> bytes) -> Status {
        crc = crc32(crc, bytes);
        position_ += bytes.size();
        return sink_(bytes);
      },
      scratch_bytes));
  ARGOSY_CHECK(position_ - start == size, "a source streamed another number of bytes than it has: " + source.recipe());
  records_.back().crc = crc;
  return write(zip::descriptor(records_.back()));
}

Status ZipWriter::finish() { return write(zip::directory(records_, position_)); }

}  // namespace argosy
