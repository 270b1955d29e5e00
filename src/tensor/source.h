#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace argosy {

class TensorSource;
class SourceGroup;
using TensorSourcePtr = std::shared_ptr<const TensorSource>;
using SourceGroupPtr = std::shared_ptr<const SourceGroup>;

/// Takes the next bytes of a stream. The span is only valid during the call.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

/// A box of a tensor: for each dim, the first index and how many. All dims are given.
struct Box {
  std::vector<int64_t> start;
  std::vector<int64_t> extent;
};

/// Where a tensor lies, byte for byte, in a file: for copy_file_range and links.
struct FileRange {
  std::string path;
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Bump allocator over one buffer of fixed size, handed down through nested recipes. Never grows.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> buffer) : buffer_(buffer) {}
  /// The next `size` bytes (16-byte aligned). Asking for more than is left is a bug of ours.
  std::span<std::byte> take(size_t size);
  size_t mark() const { return used_; }
  void release(size_t mark) { used_ = mark; }

 private:
  std::span<std::byte> buffer_;
  size_t used_ = 0;
};

/// An immutable recipe for the bytes of one tensor, row-major and little-endian. Owns no data, reads when asked, may be
/// read by several threads at once.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual DType dtype() const = 0;
  virtual std::span<const int64_t> shape() const = 0;
  /// Canonical text; equal recipes give equal bytes, and are written once.
  virtual std::string recipe() const = 0;

  /// Reads one box, packed row-major, into `out` (exactly its bytes). The box must be inside the tensor (a bug of ours
  /// if not).
  virtual Status read(const Box& box, std::span<std::byte> out, Scratch& scratch) const = 0;
  /// Scratch bytes, beyond the output, that read() needs at most for any box of so many elements.
  virtual size_t scratch_for(int64_t elements) const = 0;

  /// Set if the tensor's bytes lie unchanged in one file.
  virtual std::optional<FileRange> file_range() const { return std::nullopt; }
  /// Set if this is one output of a group that is best read once for all its outputs.
  virtual SourceGroupPtr group() const { return nullptr; }
  /// Which output of its group this is.
  virtual size_t group_index() const { return 0; }

  int64_t elements() const;
  int64_t bytes() const;

  /// Streams elements [first, first + count) in row-major order, allocating at most `scratch_bytes` in all.
  /// Parallel workers each take a range.
  Status stream_range(int64_t first, int64_t count, const ByteSink& sink, size_t scratch_bytes) const;
  Status stream_to(const ByteSink& sink, size_t scratch_bytes) const;
};

/// Several tensors computed in one read of one input: a quantised weight and its scales.
class SourceGroup {
 public:
  virtual ~SourceGroup() = default;
  virtual size_t size() const = 0;
  virtual DType dtype(size_t output) const = 0;
  virtual std::span<const int64_t> shape(size_t output) const = 0;
  virtual std::string recipe() const = 0;
  /// Streams all outputs, each to its sink in row-major order, reading the input once.
  virtual Status stream_to(std::span<const ByteSink> sinks, size_t scratch_bytes) const = 0;
};

/// Output `index` of a group as a source of its own (reads the input again if it is streamed alone).
TensorSourcePtr group_output(SourceGroupPtr group, size_t index);

// ---- Sources. Shapes, dims and sizes that do not fit are errors, found when the recipe is built, not when it is read.
// ----

/// Bytes somewhere in memory that outlives the source: live weights. `owner` keeps it alive if given; `identity` names
/// it in the recipe.
Result<TensorSourcePtr> borrowed(std::span<const std::byte> bytes, DType dtype, std::vector<int64_t> shape,
                                 std::string identity, std::shared_ptr<const void> owner = nullptr);
/// Bytes of its own; for small constants. The recipe holds a hash of the content.
Result<TensorSourcePtr> literal(std::vector<std::byte> bytes, DType dtype, std::vector<int64_t> shape);
/// Row-major bytes of a shape whose contents are not known: for programs without weights. Reading fails with kNotFound.
Result<TensorSourcePtr> shape_only(DType dtype, std::vector<int64_t> shape, std::string name);
/// Converts among f64, f32, f16, bf16 (exact rounding to nearest even; NaNs stay NaNs), and integers and bool to and
/// among these by value.
Result<TensorSourcePtr> converted(TensorSourcePtr source, DType dtype);
Result<TensorSourcePtr> transposed(TensorSourcePtr source, std::vector<int> permutation);
Result<TensorSourcePtr> concatenated(std::vector<TensorSourcePtr> sources, int dim);
Result<TensorSourcePtr> stacked(std::vector<TensorSourcePtr> sources, int dim);
/// Indices [start, start + length) of one dim: what split and chunk are made of.
Result<TensorSourcePtr> sliced(TensorSourcePtr source, int dim, int64_t start, int64_t length);
Result<TensorSourcePtr> reshaped(TensorSourcePtr source, std::vector<int64_t> shape);
/// Symmetric int8 quantisation in blocks along the last dim: output 0 is i8 of the source's shape, output 1 the f32
/// scales
/// [..., ceil(last / block)]. The source is f32, f16 or bf16.
Result<SourceGroupPtr> quantized_int8(TensorSourcePtr source, int64_t block);

}  // namespace argosy
