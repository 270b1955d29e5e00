// Any bytes as the pickle of a file of torch.save: refused with an error, or tensors with as many strides as dims.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/torch_pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy;
  auto tensors = read_torch_pickle(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!tensors) return 0;
  for (const TorchTensor& tensor : *tensors) {
    ARGOSY_CHECK(!tensor.name.empty() && tensor.shape.size() == tensor.strides.size() && tensor.storage_bytes >= 0,
                 "a tensor was read that makes no sense");
  }
  return 0;
}
