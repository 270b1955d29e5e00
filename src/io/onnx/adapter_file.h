#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/output.h"
#include "io/safetensors_writer.h"

namespace argosy {

/// How the files end in which ONNX Runtime takes values for inputs of a graph that have defaults: LoRA adapters.
inline constexpr std::string_view kAdapterSuffix = ".onnx_adapter";

/// What such a file will be. The format is FlatBuffers with offsets to what comes later, so that it can be written from
/// the front while tensors are streamed. Same tensors, same bytes.
struct AdapterLayout {
  /// A tensor and the bytes in front of it.
  struct Piece {
    std::string before;
    TensorSourcePtr tensor;
  };
  std::vector<Piece> pieces;
  uint64_t total_bytes = 0;
};

/// Tensors become values for inputs of their names. They are sorted by name, f32, f16 or bf16, and at least one; a file
/// of 2 GiB or more is refused, since ONNX Runtime reads none.
Result<AdapterLayout> lay_out_adapter(std::vector<NamedSource> tensors);

/// Appends to an output that is at its start.
Status write_adapter(const AdapterLayout& layout, OutputFile& file, size_t scratch_bytes);

}  // namespace argosy
