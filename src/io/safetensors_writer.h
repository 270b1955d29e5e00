#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/output.h"
#include "tensor/source.h"

namespace argosy {

struct NamedSource {
  std::string name;
  TensorSourcePtr source;
};

/// What a safetensors file will be: its first bytes (length and header) and the tensors in the order in which they
/// follow. Sorted by element size, widest first, then by name, so that every tensor is aligned; the header is padded by
/// spaces to 8 bytes. Same tensors and metadata, same bytes.
struct SafetensorsLayout {
  std::string header;
  std::vector<NamedSource> tensors;
  uint64_t total_bytes = 0;  // of the whole file
};

/// Refuses names that are empty, twice there, "__metadata__" or not UTF-8, and dtypes that the format lacks.
Result<SafetensorsLayout> lay_out_safetensors(std::vector<NamedSource> tensors,
                                              std::vector<std::pair<std::string, std::string>> metadata = {});

/// Appends to an output that is at its start; tensors that lie in files are copied by the kernel where it can.
Status write_safetensors(const SafetensorsLayout& layout, OutputFile& file, size_t scratch_bytes);
/// Streams to a sink, for instance into a zip entry.
Status write_safetensors(const SafetensorsLayout& layout, const ByteSink& sink, size_t scratch_bytes);

}  // namespace argosy
