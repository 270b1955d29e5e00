#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "backends/executorch/document.h"
#include "base/result.h"

namespace argosy::executorch {

/// A piece of the file behind the flatbuffer, relative to where these begin.
struct Segment {
  uint64_t offset = 0, size = 0;
};

/// Which segment each piece of data is, and where in it.
struct SegmentTable {
  std::vector<Segment> segments;
  std::vector<uint32_t> data;                    // Document::data[i] is this segment
  std::vector<std::vector<uint32_t>> delegates;  // [method][delegate] is this segment
};

/// The flatbuffer of a program, with its extended header, padded to where segments begin.
Result<std::string> encode_program(const Document& document, const SegmentTable& segments, bool data_is_beside);

}  // namespace argosy::executorch
