#include "debug/named_passes.h"

#include <vector>

#include "backends/executorch/lowering.h"
#include "backends/onnx/lowering.h"
#include "backends/pt2/lowering.h"

namespace argosy {

std::span<const NamedPass> every_pass() {
  static const std::vector<NamedPass> all = [] {
    std::vector<NamedPass> passes;
    for (auto family : {all_passes(), onnx::lowering_passes(), executorch::lowering_passes(), pt2_lowering_passes()}) {
      passes.insert(passes.end(), family.begin(), family.end());
    }
    return passes;
  }();
  return all;
}

}  // namespace argosy
