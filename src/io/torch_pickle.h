#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace argosy {

/// A tensor as the pickle of a file of torch.save describes it. Nothing is known yet of the bytes behind it.
struct TorchTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::string storage;        // its bytes are the file's entry data/STORAGE
  int64_t storage_bytes = 0;  // of that whole entry
  int64_t offset = 0;         // of the first element, in elements
  std::vector<int64_t> shape, strides;
};

/// The tensors of a pickled state dict, in its order. Runs no code: the pickle is read as data, by a machine that knows
/// only what state dicts consist of (dicts, texts, numbers, tensors, parameters); whatever else a pickle asks for is
/// refused by name. Time and memory are bounded by the length of the pickle. `file_name` is for messages.
Result<std::vector<TorchTensor>> read_torch_pickle(std::string_view pickle, std::string_view file_name);

}  // namespace argosy
