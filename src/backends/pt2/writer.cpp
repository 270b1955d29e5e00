#include "backends/pt2/writer.h"

#include "backends/pt2/document.h"
#include "base/text.h"
#include "io/zip.h"

namespace argosy {

Status write_pt2(const Program& program, const Pt2WriteOptions& options) {
  ARGOSY_TRY(Pt2Document document, build_pt2_document(program, options));
  ARGOSY_TRY(OutputFile file, OutputFile::create(options.path, options.overwrite));
  ZipWriter zip(file.sink());
  for (const Pt2Document::Entry& entry : document.entries) {
    Status status = entry.source == nullptr ? zip.add(entry.name, entry.text)
                                            : zip.add(entry.name, *entry.source, options.scratch_bytes);
    if (!status) return fail(std::move(status.error().in(format("writing entry {}", quoted(entry.name)))));
  }
  ARGOSY_TRY_STATUS(zip.finish());
  return file.commit();
}

}  // namespace argosy
