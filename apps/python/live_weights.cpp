#include "live_weights.h"

#include <set>

#include "base/text.h"
#include "bindings.h"

namespace argosy {

std::vector<LiveTensor> live_weights(const std::vector<TensorTuple>& tensors) {
  std::vector<LiveTensor> weights;
  weights.reserve(tensors.size());
  for (const auto& [name, dtype_text, shape, address, bytes, identity] : tensors) {
    std::optional<DType> dtype = dtype_from_text(dtype_text);
    if (!dtype) raise({ErrorCode::kInvalidInput, format("{} has the unknown dtype {}", name, dtype_text)});
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of a live tensor
    std::span<const std::byte> data(reinterpret_cast<const std::byte*>(address), bytes);
    weights.push_back({name, *dtype, shape, data, identity});
  }
  return weights;
}

void raise_all(Error error, const Diagnostics& diagnostics) {
  std::set<std::string> told{error.message};
  for (const Error& other : diagnostics.errors) {
    if (told.insert(other.message).second) error.in(format("the same model, where {}", other.message));
  }
  raise(error);
}

}  // namespace argosy
