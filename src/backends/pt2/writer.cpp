#include "backends/pt2/writer.h"

#include <vector>

#include "io/zip_file.h"

namespace argosy {

Status write_pt2_document(const Pt2Document& document, OutputFile& file, const TensorWriteOptions& options) {
  std::vector<ZipItem> items;
  for (const Pt2Document::Entry& entry : document.entries) {
    items.push_back({entry.name, entry.text, entry.source.get()});
  }
  return write_zip_file(items, file, options);
}

Status write_pt2(const Program& program, const Pt2WriteOptions& options) {
  Pt2DocumentOptions document_options;
  document_options.root = options.path.stem().string();
  document_options.missing_weights = options.missing_weights;
  document_options.sample_inputs = options.sample_inputs;
  ARGOSY_TRY(Pt2Document document, build_pt2_document(program, document_options));
  ARGOSY_TRY(OutputFile file, OutputFile::create(options.path, options.overwrite));
  uint64_t total = document.content_bytes();
  TensorWriteOptions stream;
  stream.scratch_bytes = options.scratch_bytes;
  if (options.progress) stream.progress = [&](uint64_t done) { options.progress(done, total); };
  ARGOSY_TRY_STATUS(write_pt2_document(document, file, stream));
  ARGOSY_TRY_STATUS(file.commit());
  if (options.progress) options.progress(total, total);
  return {};
}

}  // namespace argosy
