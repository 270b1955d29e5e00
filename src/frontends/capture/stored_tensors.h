#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "io/safetensors.h"
#include "io/zip.h"

namespace argosy {

/// The header of a safetensors file that is an entry of a capture.
class StoredTensors {
 public:
  /// Empty if there is no such entry.
  static Result<StoredTensors> read(const ZipReader& zip, std::string_view entry);
  /// Offsets count from the start of the capture. Null: there is none of that name.
  const SafetensorsEntry* find(const std::string& name) const;

 private:
  std::unordered_map<std::string, SafetensorsEntry> tensors_;
};

}  // namespace argosy
