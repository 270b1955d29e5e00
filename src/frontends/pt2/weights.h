#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "frontends/pt2/json_field.h"
#include "io/zip.h"
#include "ir/program.h"

namespace argosy {

/// The tensors of a .pt2 archive: what its two payload configs of a model say, as sources over the file.
class Pt2Weights {
 public:
  Pt2Weights(const ZipReader& zip, std::string root) : zip_(zip), root_(std::move(root)) {}

  /// Reads <model>_weights_config.json and <model>_constants_config.json.
  Status read_configs(std::string_view model);

  /// The weight of that name of the model whose configs were read last, added to the program if no model brought it
  /// before. Models of one archive share a weight if name and bytes are the same; one of another content gets
  /// "<model>/" before its name.
  Result<WeightId> bind(Program& program, std::string_view model, WeightKind kind, std::string_view name, DType dtype,
                        const std::vector<int64_t>& shape);

 private:
  struct Payload {
    std::string entry;    // of the archive, without the root folder
    uint64_t offset = 0;  // in the file
    DType dtype = DType::kF32;
    std::vector<int64_t> shape;
    std::vector<int> permutation;  // empty: row-major; else how the stored tensor is transposed to the weight
    bool is_shape_only = false;

    /// Equal keys: equal tensors.
    std::string key() const;
  };
  Status read_config(std::string_view folder, std::string_view file);
  Result<Payload> read_payload(std::string_view folder, std::string_view name, const JsonField& meta) const;
  Result<TensorSourcePtr> source(const Payload& payload, std::string_view name) const;

  const ZipReader& zip_;
  std::string root_;
  std::unordered_map<std::string, Payload> payloads_;     // of the current model
  std::unordered_map<std::string, WeightId> by_name_;     // of the program
  std::unordered_map<std::string, WeightId> by_content_;  // first weight of each content
  std::unordered_map<uint32_t, std::string> content_;     // by weight index
};

}  // namespace argosy
