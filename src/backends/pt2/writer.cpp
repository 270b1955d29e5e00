#include "backends/pt2/writer.h"

#include <algorithm>

#include "backends/pt2/document.h"
#include "base/text.h"
#include "io/zip.h"

namespace argosy {
namespace {

uint64_t content_bytes(const Pt2Document& document) {
  uint64_t bytes = 0;
  for (const Pt2Document::Entry& entry : document.entries) {
    bytes += entry.source == nullptr ? entry.text.size() : static_cast<uint64_t>(entry.source->bytes());
  }
  return bytes;
}

/// Appends to the file and tells how far it has come. The zip's own headers count until the total is reached.
ByteSink reporting_sink(OutputFile& file, const Pt2WriteOptions& options, uint64_t total) {
  if (!options.progress) return file.sink();
  return [&file, &options, total, sink = file.sink()](std::span<const std::byte> bytes) -> Status {
    ARGOSY_TRY_STATUS(sink(bytes));
    options.progress(std::min(file.size(), total), total);
    return {};
  };
}

}  // namespace

Status write_pt2(const Program& program, const Pt2WriteOptions& options) {
  ARGOSY_TRY(Pt2Document document, build_pt2_document(program, options));
  ARGOSY_TRY(OutputFile file, OutputFile::create(options.path, options.overwrite));
  uint64_t total = content_bytes(document);
  ZipWriter zip(reporting_sink(file, options, total));
  for (const Pt2Document::Entry& entry : document.entries) {
    Status status = entry.source == nullptr ? zip.add(entry.name, entry.text)
                                            : zip.add(entry.name, *entry.source, options.scratch_bytes);
    if (!status) return fail(std::move(status.error().in(format("writing entry {}", quoted(entry.name)))));
  }
  ARGOSY_TRY_STATUS(zip.finish());
  ARGOSY_TRY_STATUS(file.commit());
  if (options.progress) options.progress(total, total);
  return {};
}

}  // namespace argosy
