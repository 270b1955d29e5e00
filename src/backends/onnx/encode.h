#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/onnx/document.h"
#include "base/result.h"

namespace argosy::onnx {

/// Initializers of up to this size always lie in the model itself, where every reader finds them.
inline constexpr int64_t kSmallTensorBytes = 1024;
/// protobuf readers refuse larger models.
inline constexpr uint64_t kMaxModelBytes = INT32_MAX;

/// Where the bytes of one initializer are: in a file beside the model, or in the model.
struct TensorPlace {
  std::string location;  // a name in the model's folder; empty: in the model
  uint64_t offset = 0;   // in that file
};

/// A ModelProto with gaps for tensors that are too large to be held: tensor i belongs before byte gaps[i].before.
struct EncodedModel {
  struct Gap {
    size_t before;
    TensorSourcePtr tensor;
    std::string name;
  };
  std::string bytes;
  std::vector<Gap> gaps;  // in order

  /// With its tensors.
  uint64_t size() const;
};

/// The file of a named model (name_model()), `places` has one for each initializer. Fails for dtypes that ONNX lacks
/// and for models above kMaxModelBytes. Reads the small tensors only. Linear in the model; same model, same bytes.
Result<EncodedModel> encode(const Model& model, std::span<const TensorPlace> places);

/// The whole file in memory.
Result<std::string> to_bytes(const EncodedModel& model);

}  // namespace argosy::onnx
