#include "io/zip_file.h"

#include <vector>

#include "io/crc32.h"
#include "io/zip_records.h"

namespace argosy {
namespace {

Status write_text(OutputFile& file, uint64_t offset, std::string_view text) {
  return file.write_at(offset, std::as_bytes(std::span(text)));
}

}  // namespace

Status write_zip_file(std::span<const ZipItem> items, OutputFile& file, const TensorWriteOptions& options) {
  std::vector<zip::Record> records;
  std::vector<PlacedTensor> tensors;
  zip::NameCheck names;
  uint64_t position = 0;
  for (const ZipItem& item : items) {
    ARGOSY_TRY_STATUS(names.add(item.name));
    zip::Record record{std::string(item.name), position, item.text.size(), 0, item.source != nullptr};
    if (item.source == nullptr) {
      record.crc = crc32(0, std::as_bytes(std::span(item.text)));
    } else {
      record.size = static_cast<uint64_t>(item.source->bytes());
    }
    std::string header = zip::local_header(record);
    ARGOSY_TRY_STATUS(write_text(file, position, header));
    position += header.size();
    if (item.source == nullptr) {
      ARGOSY_TRY_STATUS(write_text(file, position, item.text));
    } else {
      tensors.push_back({item.name, item.source, position, &file});
    }
    position += record.size + (record.is_streamed ? zip::descriptor_size(record.size) : 0);
    records.push_back(std::move(record));
  }
  ARGOSY_TRY_STATUS(write_tensors(tensors, options));
  size_t next = 0;
  for (zip::Record& record : records) {
    if (!record.is_streamed) continue;
    const PlacedTensor& tensor = tensors[next++];
    record.crc = tensor.crc;
    ARGOSY_TRY_STATUS(write_text(file, tensor.offset + record.size, zip::descriptor(record)));
  }
  return write_text(file, position, zip::directory(records, position));
}

}  // namespace argosy
