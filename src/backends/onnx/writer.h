#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/onnx/document.h"
#include "backends/onnx/encode.h"
#include "backends/onnx/layout.h"
#include "base/result.h"
#include "io/tensor_writer.h"

namespace argosy::onnx {

/// A model and the name of its file.
struct NamedModel {
  std::string file;
  Model model;
};

/// Values that were finite and are infinite in a narrower dtype.
struct Overflow {
  std::string tensor;
  uint64_t values = 0;
  size_t bundle = 0;  // of those that are written together
};

/// Models over one set of weights, laid out and ready to be written.
class Bundle {
 public:
  /// Names the models' values and lays out their weights. Fails if a model would be too large for a file.
  static Result<Bundle> build(std::vector<NamedModel> models, const LayoutOptions& options);

  const std::vector<NamedModel>& models() const { return models_; }
  const Layout& layout() const { return layout_; }
  /// Bytes that write() writes: models with what is embedded in them, and the data file; linked files do not count.
  uint64_t new_bytes() const;
  uint64_t linked_bytes() const;
  /// Model i as it is written.
  Result<EncodedModel> encoded(size_t index) const;
  /// Metadata to be written with model i that is only known late, such as whether it was checked.
  void set_metadata(size_t index, std::string key, std::string value);

  /// Writes all files into an existing folder and links what is linked; `options.progress` counts the bytes of tensors.
  /// Same bundle, same bytes. Overflows are those of conversions to f16, counted while streaming.
  Result<std::vector<Overflow>> write(const std::filesystem::path& folder, const TensorWriteOptions& options) const;

 private:
  std::vector<NamedModel> models_;
  Layout layout_;
  uint64_t model_bytes_ = 0;
};

/// Writes several bundles, each into its folder. What they are made of is read once for all of them.
Result<std::vector<Overflow>> write_bundles(std::span<const std::pair<const Bundle*, std::filesystem::path>> bundles,
                                            const TensorWriteOptions& options);

}  // namespace argosy::onnx
