#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/onnx/document.h"
#include "backends/onnx/encode.h"
#include "backends/onnx/options.h"
#include "base/result.h"

namespace argosy::onnx {

struct LayoutOptions {
  WeightsMode weights = WeightsMode::kCopy;
  std::string data_file = "model.onnx.data";  // its name
  /// The largest size of a data file, unless a single tensor is larger; the rest goes to NAME_1, NAME_2 and so on. 0:
  /// no limit.
  uint64_t max_data_bytes = 0;
  /// With kLink: the files that may be linked, as file_range() names them, and what their names in the bundle begin
  /// with.
  std::set<std::string> linkable;
  std::string link_prefix;
};

/// Which bytes go where, for the models of one bundle.
struct Layout {
  struct Tensor {
    std::string name;  // that of the first initializer, for messages
    TensorSourcePtr source;
    uint64_t offset = 0;
  };
  struct LinkedFile {
    std::filesystem::path from;
    std::string name;
    uint64_t bytes = 0;  // that are used
  };
  struct DataFile {
    std::string name;
    std::vector<Tensor> tensors;  // by offset; at least one
    uint64_t bytes = 0;           // gaps included
  };
  std::vector<DataFile> data_files;  // none if all tensors are elsewhere
  std::vector<LinkedFile> linked;
  std::vector<std::vector<TensorPlace>> places;  // for each model and initializer

  uint64_t data_bytes() const;  // of all data files
};

/// Large tensors begin at multiples of this, so that they can be mapped into memory; others at multiples of
/// kSmallAlignment, after the large ones.
inline constexpr uint64_t kLargeAlignment = 4096, kSmallAlignment = 64;

/// Lays out the initializers of all models together: equal recipes, and equal ranges of a file, are placed once. Reads
/// nothing. Tensors whose bytes are not known are an error that names them.
Result<Layout> lay_out(std::span<const Model* const> models, const LayoutOptions& options);

}  // namespace argosy::onnx
