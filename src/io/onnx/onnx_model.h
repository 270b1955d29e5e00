#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/onnx/onnx_graph.h"
#include "tensor/dtype.h"

namespace argosy {

/// A size that is known, or has a name, or neither.
struct OnnxDim {
  std::optional<int64_t> value;
  std::string name;
};

/// An input or output of a graph.
struct OnnxValue {
  std::string name;
  std::string type;            // "f32", "string", "sequence(f32)", "optional(…)", "map", "unknown"
  std::vector<OnnxDim> shape;  // of a tensor
  bool has_shape = false;
};

struct OnnxOpCount {
  std::string domain;  // "" is ONNX's own
  std::string op_type;
  uint64_t count = 0;
};

/// Constant data of a graph. `dtype` is not set for strings and for types that are not known.
struct OnnxInitializer {
  std::string name;
  std::string type;
  std::optional<DType> dtype;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string location;  // a file beside the model; empty if the data is in the model
  uint64_t offset = 0;   // in that file
};

struct OnnxFunction {
  std::string domain, name;
  uint64_t nodes = 0;
};

struct OnnxExternalFile {
  std::string location;
  uint64_t needed_bytes = 0;                // the end of the last tensor in it
  std::optional<uint64_t> available_bytes;  // nullopt: it is not there
};

/// What an .onnx file says of itself, without the values of its tensors. Initializers and ops of sub-graphs are
/// included, bodies of functions are not. Tensors of attributes count only for `external_files`.
struct OnnxModel {
  int64_t ir_version = 0;
  std::string producer_name, producer_version;
  std::vector<std::pair<std::string, int64_t>> opset_imports;       // (domain, version), sorted
  std::vector<std::pair<std::string, std::string>> metadata_props;  // sorted
  std::string graph_name;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxOpCount> ops;  // most frequent first, then by name
  std::vector<OnnxInitializer> initializers;
  std::vector<OnnxFunction> functions;
  std::vector<OnnxExternalFile> external_files;  // sorted
  OnnxGraph graph;                               // if OnnxNodes::kRead is asked for, else empty
};

/// What becomes of external data that leaves the model's folder or lies beyond the end of its file: an error, or an
/// item of `external_files` like any other, for callers that judge themselves. Such callers must not open what
/// is_plain_relative_path() refuses.
enum class OnnxExternalData : uint8_t { kMustBeSound, kAsWritten };

/// Whether nodes are only counted by op, or also kept: a few hundred bytes of memory each. Of more than a million
/// nodes, keeping them is an error.
enum class OnnxNodes : uint8_t { kCounted, kRead };

/// Reads an .onnx file, mapped into memory: tensor values are skipped without being touched. Malformed files,
/// sub-graphs or types nested more than 64 levels deep, and values whose size contradicts their type and shape are
/// errors; an external file that is not there is only recorded.
Result<OnnxModel> read_onnx_model(const std::filesystem::path& path,
                                  OnnxExternalData external = OnnxExternalData::kMustBeSound,
                                  OnnxNodes nodes = OnnxNodes::kCounted);

/// The same from memory, without a look at external files. `name` is for messages.
Result<OnnxModel> parse_onnx_model(std::string_view bytes, std::string_view name,
                                   OnnxExternalData external = OnnxExternalData::kMustBeSound,
                                   OnnxNodes nodes = OnnxNodes::kCounted);

}  // namespace argosy
