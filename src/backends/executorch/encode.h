#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/executorch/document.h"
#include "base/result.h"

namespace argosy::executorch {

/// A piece of the file behind the flatbuffer, relative to where these begin. Pieces may lie inside one another.
struct Segment {
  uint64_t offset = 0, size = 0;
};

/// Tensors in a segment, found by index; index 0 means none.
struct Subsegments {
  uint32_t segment = 0;
  std::vector<uint64_t> offsets{0};         // relative to the segment
  std::map<std::string, uint32_t> indices;  // by key
};

/// A tensor of a .ptd file: tensors that take the same bytes in two shapes have two names.
struct ExternalTensor {
  std::string name;
  size_t data = 0;  // index of Document::data
  DType dtype = DType::kF32;
  std::vector<int32_t> sizes;
};

/// Where the runtime finds payloads and data. All data of a .pte file can also be found by name, by delegates and
/// others; data of constants is in one segment, which the runtime loads as a whole.
struct DataMap {
  std::vector<Segment> segments;                 // by offset
  std::vector<std::vector<uint32_t>> delegates;  // [method][delegate] is this segment
  bool is_beside = false;                        // whether data is in a .ptd file; then what follows is empty
  std::vector<uint32_t> data;                    // Document::data[i] is this segment
  Subsegments constants, states;
};

/// Segments behind a flatbuffer begin at multiples of this, or of what their data asks for if that is more.
inline constexpr uint64_t kSegmentAlignment = 128;

/// The flatbuffer of a program, with its extended header, padded to where segments begin.
Result<std::string> encode_program(const Document& document, const DataMap& map);

/// The tensors that a program wants to find in a .ptd file, in order of first use.
std::vector<ExternalTensor> external_tensors(const Document& document);

/// The flatbuffer of a .ptd file, padded likewise. Segment i is Document::data[i]; data that no tensor takes is found
/// by its key. The types are known to be ExecuTorch's.
std::string encode_data(const Document& document, const std::vector<Segment>& segments);

}  // namespace argosy::executorch
