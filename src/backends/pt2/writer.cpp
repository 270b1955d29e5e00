#include "backends/pt2/writer.h"

#include <algorithm>

#include "base/text.h"
#include "io/zip.h"

namespace argosy {
namespace {

/// Appends to the file and tells how far it has come.
ByteSink reporting_sink(OutputFile& file, const Pt2StreamOptions& options) {
  if (!options.progress) return file.sink();
  return [&file, &options, sink = file.sink()](std::span<const std::byte> bytes) -> Status {
    ARGOSY_TRY_STATUS(sink(bytes));
    options.progress(file.size());
    return {};
  };
}

}  // namespace

Status write_pt2_document(const Pt2Document& document, OutputFile& file, const Pt2StreamOptions& options) {
  ZipWriter zip(reporting_sink(file, options));
  for (const Pt2Document::Entry& entry : document.entries) {
    Status status = entry.source == nullptr ? zip.add(entry.name, entry.text)
                                            : zip.add(entry.name, *entry.source, options.scratch_bytes);
    if (!status) return fail(std::move(status.error().in(format("writing entry {}", quoted(entry.name)))));
  }
  return zip.finish();
}

Status write_pt2(const Program& program, const Pt2WriteOptions& options) {
  Pt2DocumentOptions document_options;
  document_options.root = options.path.stem().string();
  document_options.missing_weights = options.missing_weights;
  document_options.sample_inputs = options.sample_inputs;
  ARGOSY_TRY(Pt2Document document, build_pt2_document(program, document_options));
  ARGOSY_TRY(OutputFile file, OutputFile::create(options.path, options.overwrite));
  uint64_t total = document.content_bytes();
  Pt2StreamOptions stream;
  stream.scratch_bytes = options.scratch_bytes;
  // The zip's own headers count until the total is reached.
  if (options.progress) stream.progress = [&](uint64_t done) { options.progress(std::min(done, total), total); };
  ARGOSY_TRY_STATUS(write_pt2_document(document, file, stream));
  ARGOSY_TRY_STATUS(file.commit());
  if (options.progress) options.progress(total, total);
  return {};
}

}  // namespace argosy
