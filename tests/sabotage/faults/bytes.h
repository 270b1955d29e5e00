#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy::sabotage {

/// All bytes of a tensor. Those of faults are small.
Result<std::vector<std::byte>> read_all(const TensorSource& source);

/// The tensor with other bytes, as many as before.
using ByteEdit = std::function<void(std::vector<std::byte>&)>;
Result<TensorSourcePtr> with_bytes(const TensorSource& source, const ByteEdit& edit);
/// The same for numbers of float32. Another dtype is an error.
using FloatEdit = std::function<void(std::vector<float>&)>;
Result<TensorSourcePtr> with_floats(const TensorSource& source, const FloatEdit& edit);
Result<std::vector<float>> read_floats(const TensorSource& source);

/// Index i along `dim` becomes index i - 1, the last one the first.
Result<TensorSourcePtr> shifted(const TensorSourcePtr& source, int dim);
/// The other way round along `dim`.
Result<TensorSourcePtr> reversed(const TensorSourcePtr& source, int dim);

}  // namespace argosy::sabotage
