#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "tensor/dtype.h"

namespace argosy {

/// One tensor of a file of torch.save.
struct TorchFileEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  /// Empty: its elements lie in row-major order. Else dim i of the tensor is dim order[i] of what lies in the file.
  std::vector<int> order;
};

/// The tensors of a state dict that torch.save wrote (pytorch_model.bin): a zip file of stored entries, one of which is
/// a pickle, the others the bytes of storages. Reads the directory and the pickle, which runs no code
/// (io/torch_pickle.h). Tensors may share bytes, as tied weights do, and be transposed in memory; ones that repeat or
/// leave out elements are refused, as are files that PyTorch wrote before version 1.6. `file_name` is for messages.
Result<std::vector<TorchFileEntry>> read_torch_file(const std::shared_ptr<const ReadFile>& file,
                                                    std::string_view file_name);

}  // namespace argosy
