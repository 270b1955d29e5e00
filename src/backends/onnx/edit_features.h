#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/onnx/document.h"
#include "base/result.h"

/// Edits of backends/onnx/edit.h's kind for models whose pictures have several features a token, some of them for
/// deeper layers of the decoder: engines that hand on one tensor get all of them side by side in that.
namespace argosy::onnx {

/// Outputs [n, width] become one under the first one's name, side by side.
Status join_outputs(Model& model, const std::vector<std::string>& outputs);

/// Names in the graph that puts features into the embeddings of a text.
struct FeatureSpread {
  std::string features;                   // input [n, width]; for callers it has the others beside it
  std::vector<std::string> more_inputs;   // [n, width], which go
  std::string embeddings;                 // output [batch, sequence, width]; for callers it has features beside it
  std::string mask;                       // output [batch, sequence], true at places with features; goes
  std::vector<std::string> more_outputs;  // [n, width], which go
};
/// Embeddings of every token are followed by its further features, zeros where it has none.
Status spread_features(Model& model, const FeatureSpread& spread);

/// The other end, in the decoder: the inputs `mask` [batch, sequence] and `features` [n, width] are computed from what
/// is beside the embeddings. Every token has features there; those that are zeros change nothing where they are added.
Status take_spread_features(Model& model, std::string_view embeddings, std::string_view mask,
                            const std::vector<std::string>& features);

}  // namespace argosy::onnx
