#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"

namespace argosy {

/// One tensor of a GGUF file, under llama.cpp's name.
struct GgufEntry {
  std::string name;
  DType dtype = DType::kF32;                // f32 for blocks, which are decoded when they are read
  std::vector<int64_t> shape;               // outermost first, as everywhere here; the file has it the other way round
  uint64_t offset = 0;                      // in the file
  uint64_t bytes = 0;                       // there
  BlockFormat format = BlockFormat::kNone;  // kNone: elements of the dtype
};

/// The tensors of a GGUF file of version 2 or 3, sorted by name. Reads what precedes the tensors; of the metadata only
/// the alignment counts. Types of blocks other than BlockFormat's are refused by name. `file_name` is for messages.
Result<std::vector<GgufEntry>> read_gguf_file(const ReadFile& file, std::string_view file_name);

}  // namespace argosy
