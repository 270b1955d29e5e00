#include "faults/bytes.h"

#include <cstring>

namespace argosy::sabotage {
namespace {

constexpr size_t kScratch = size_t{16} << 20;

}  // namespace

Result<std::vector<std::byte>> read_all(const TensorSource& source) {
  std::vector<std::byte> bytes;
  ARGOSY_TRY_STATUS(source.stream_to(
      [&](std::span<const std::byte> part) -> Status {
        bytes.insert(bytes.end(), part.begin(), part.end());
        return {};
      },
      kScratch));
  return bytes;
}

Result<TensorSourcePtr> with_bytes(const TensorSource& source, const ByteEdit& edit) {
  ARGOSY_TRY(std::vector<std::byte> bytes, read_all(source));
  edit(bytes);
  return literal(std::move(bytes), source.dtype(), {source.shape().begin(), source.shape().end()});
}

Result<std::vector<float>> read_floats(const TensorSource& source) {
  if (source.dtype() != DType::kF32) return fail(ErrorCode::kInvalidInput, "the fault spoils float32 only");
  ARGOSY_TRY(std::vector<std::byte> bytes, read_all(source));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Result<TensorSourcePtr> with_floats(const TensorSource& source, const FloatEdit& edit) {
  ARGOSY_TRY(std::vector<float> values, read_floats(source));
  edit(values);
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return literal(std::move(bytes), DType::kF32, {source.shape().begin(), source.shape().end()});
}

Result<TensorSourcePtr> shifted(const TensorSourcePtr& source, int dim) {
  int64_t size = source->shape()[static_cast<size_t>(dim)];
  ARGOSY_TRY(TensorSourcePtr last, sliced(source, dim, size - 1, 1));
  ARGOSY_TRY(TensorSourcePtr rest, sliced(source, dim, 0, size - 1));
  return concatenated({std::move(last), std::move(rest)}, dim);
}

Result<TensorSourcePtr> reversed(const TensorSourcePtr& source, int dim) {
  std::vector<TensorSourcePtr> parts;
  for (int64_t i = source->shape()[static_cast<size_t>(dim)]; i > 0; --i) {
    ARGOSY_TRY(TensorSourcePtr part, sliced(source, dim, i - 1, 1));
    parts.push_back(std::move(part));
  }
  return concatenated(std::move(parts), dim);
}

}  // namespace argosy::sabotage
