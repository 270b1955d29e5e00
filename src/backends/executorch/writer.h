#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/executorch/document.h"
#include "base/result.h"
#include "io/tensor_writer.h"

namespace argosy::executorch {

/// Where data goes.
enum class DataPlace : uint8_t {
  kInside,  // segments of the .pte file
  kBeside,  // a .ptd file; the program finds all of it by name
};

/// A document laid out as files: every offset is known, nothing is written yet.
class Layout {
 public:
  /// The document's memory is planned.
  static Result<Layout> build(Document document, DataPlace place);
  uint64_t program_bytes() const { return program_bytes_; }  // size of the .pte file
  uint64_t data_bytes() const { return data_bytes_; }        // size of the .ptd file, 0 if there is none
  const Document& document() const { return document_; }

  /// Writes `program` and, if data is beside it, `data`: the flatbuffer first, then the data, streamed. Both files are
  /// created new; the program appears last.
  Status write(const std::filesystem::path& program, const std::filesystem::path& data,
               const TensorWriteOptions& options) const;

 private:
  Status build_inside();
  Status build_beside();
  std::vector<PlacedTensor> placed(OutputFile& file) const;

  Document document_;
  DataPlace place_ = DataPlace::kInside;
  std::string program_head_, data_head_;  // everything before the data
  std::vector<uint64_t> offsets_;         // of Document::data, in its file
  uint64_t program_bytes_ = 0, data_bytes_ = 0;
};

}  // namespace argosy::executorch
