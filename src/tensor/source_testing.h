#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tensor/box.h"
#include "tensor/cast_reference.h"
#include "tensor/source.h"

// For tests only: tensors in memory with the plainest possible version of each recipe, and leaves that count.
namespace argosy::testing_sources {

/// A tensor whose elements are whole bytes; every operation goes element by element through its indices.
struct PlainTensor {
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  size_t element_size() const { return static_cast<size_t>(bits_of(dtype)) / 8; }
  int64_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
  }
  int64_t offset(const std::vector<int64_t>& index) const {
    int64_t result = 0;
    for (size_t d = 0; d < shape.size(); ++d) result = result * shape[d] + index[d];
    return result;
  }
  std::vector<int64_t> index(int64_t offset) const {
    std::vector<int64_t> result(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      result[d] = offset % shape[d];
      offset /= shape[d];
    }
    return result;
  }
};

/// A tensor of a shape, each of whose elements `pick` finds in one of the inputs by its index there.
struct Pick {
  const PlainTensor* input;
  std::vector<int64_t> index;
};
template <class Function>
PlainTensor gather(DType dtype, std::vector<int64_t> shape, Function pick) {
  PlainTensor result{dtype, std::move(shape), {}};
  size_t size = result.element_size();
  int64_t count = result.elements();
  result.bytes.resize(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    Pick from = pick(result.index(i));
    std::memcpy(result.bytes.data() + static_cast<size_t>(i) * size,
                from.input->bytes.data() + static_cast<size_t>(from.input->offset(from.index)) * size, size);
  }
  return result;
}

inline PlainTensor plain_transpose(const PlainTensor& in, const std::vector<int>& permutation) {
  std::vector<int64_t> shape;
  for (int dim : permutation) shape.push_back(in.shape[static_cast<size_t>(dim)]);
  return gather(in.dtype, shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> from(index.size());
    for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(permutation[d])] = index[d];
    return Pick{&in, from};
  });
}

inline PlainTensor plain_slice(const PlainTensor& in, size_t dim, int64_t start, int64_t length) {
  std::vector<int64_t> shape = in.shape;
  shape[dim] = length;
  return gather(in.dtype, shape, [&](std::vector<int64_t> index) {
    index[dim] += start;
    return Pick{&in, index};
  });
}

inline PlainTensor plain_concat(const std::vector<PlainTensor>& ins, size_t dim) {
  std::vector<int64_t> shape = ins[0].shape;
  shape[dim] = 0;
  for (const PlainTensor& in : ins) shape[dim] += in.shape[dim];
  return gather(ins[0].dtype, shape, [&](std::vector<int64_t> index) {
    size_t i = 0;
    while (index[dim] >= ins[i].shape[dim]) index[dim] -= ins[i++].shape[dim];
    return Pick{&ins[i], index};
  });
}

inline PlainTensor plain_stack(const std::vector<PlainTensor>& ins, size_t dim) {
  std::vector<int64_t> shape = ins[0].shape;
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(dim), static_cast<int64_t>(ins.size()));
  return gather(ins[0].dtype, shape, [&](std::vector<int64_t> index) {
    auto which = static_cast<size_t>(index[dim]);
    index.erase(index.begin() + static_cast<ptrdiff_t>(dim));
    return Pick{&ins[which], index};
  });
}

inline PlainTensor plain_cast(const PlainTensor& in, DType dtype) {
  PlainTensor result{dtype, in.shape, {}};
  size_t from_size = in.element_size(), to_size = result.element_size();
  for (size_t i = 0; i < static_cast<size_t>(in.elements()); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, in.bytes.data() + i * from_size, from_size);
    bits = reference::convert(bits, in.dtype, dtype);
    result.bytes.resize(result.bytes.size() + to_size);
    std::memcpy(result.bytes.data() + i * to_size, &bits, to_size);
  }
  return result;
}

/// Memory that counts what is read from it, and may pretend to lie in a file.
class CountingSource final : public TensorSource {
 public:
  CountingSource(PlainTensor tensor, std::string name, std::optional<FileRange> range = std::nullopt)
      : tensor_(std::move(tensor)), name_(std::move(name)), range_(std::move(range)) {}

  DType dtype() const override { return tensor_.dtype; }
  std::span<const int64_t> shape() const override { return tensor_.shape; }
  std::string recipe() const override { return name_; }
  size_t scratch_for(int64_t) const override { return 0; }
  std::optional<FileRange> file_range() const override { return range_; }
  Status read(const Box& box, std::span<std::byte> out, Scratch&) const override {
    check_read(*this, box, out.size());
    reads += 1;
    elements_read += box_elements(box);
    int64_t size = static_cast<int64_t>(tensor_.element_size());
    BoxRuns runs(tensor_.shape, box.start, box.extent);
    std::byte* next = out.data();
    for (BoxRuns::Strip strip; runs.next(strip);) {
      for (int64_t i = 0; i < strip.count; ++i) {
        auto run_bytes = static_cast<size_t>(runs.run() * size);
        std::memcpy(next, tensor_.bytes.data() + (strip.offset + i * strip.stride) * size, run_bytes);
        next += run_bytes;
      }
    }
    return {};
  }

  mutable std::atomic<int64_t> reads = 0;
  mutable std::atomic<int64_t> elements_read = 0;

 private:
  PlainTensor tensor_;
  std::string name_;
  std::optional<FileRange> range_;
};

/// A scratch of just so many bytes.
struct ExactScratch {
  explicit ExactScratch(size_t size)
      : memory(size / 16 + 1), scratch({reinterpret_cast<std::byte*>(memory.data()), size}) {}
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::vector<Unit> memory;
  Scratch scratch;
};

/// All bytes of a range, or the error.
inline Result<std::vector<std::byte>> collect(const TensorSource& source, int64_t first, int64_t count,
                                              size_t scratch_bytes) {
  std::vector<std::byte> bytes;
  auto sink = [&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return Status{};
  };
  ARGOSY_TRY_STATUS(source.stream_range(first, count, sink, scratch_bytes));
  return bytes;
}

inline Result<std::vector<std::byte>> collect(const TensorSource& source, size_t scratch_bytes = 1 << 20) {
  return collect(source, 0, source.elements(), scratch_bytes);
}

using Outputs = std::vector<std::vector<std::byte>>;

/// What each tensor of a group gives, all at once.
inline Result<Outputs> collect(const SourceGroup& group, size_t scratch_bytes) {
  Outputs outputs(group.size());
  std::vector<ByteSink> sinks;
  for (std::vector<std::byte>& to : outputs) {
    sinks.emplace_back([&to](std::span<const std::byte> part) {
      to.insert(to.end(), part.begin(), part.end());
      return Status{};
    });
  }
  ARGOSY_TRY_STATUS(group.stream_to(sinks, scratch_bytes));
  return outputs;
}

/// Elements 0, 1, 2, ... (as bytes of their position, so that all of up to 65,536 elements differ).
inline PlainTensor counting_tensor(DType dtype, std::vector<int64_t> shape) {
  PlainTensor tensor{dtype, std::move(shape), {}};
  size_t size = tensor.element_size();
  tensor.bytes.resize(static_cast<size_t>(tensor.elements()) * size);
  for (size_t i = 0; i < tensor.bytes.size(); ++i) {
    size_t element = i / size, byte = i % size;
    tensor.bytes[i] = static_cast<std::byte>(byte % 2 == 0 ? element : element >> 8);
  }
  return tensor;
}

}  // namespace argosy::testing_sources
