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

/// Limits of a recipe, so that hostile input cannot exhaust the stack or the length of a text. A part that several
/// inputs share counts each time.
inline constexpr int kMaxTensorRank = 64;
inline constexpr int kMaxRecipeDepth = 64;
inline constexpr int64_t kMaxRecipeNodes = int64_t{1} << 20;

/// A box of a tensor: for each dim, the first index and how many. All dims are given. Of a dtype of less than 8 bits
/// every box begins and ends at a byte along the last dim, which recipes guarantee by construction.
struct Box {
  std::vector<int64_t> start;
  std::vector<int64_t> extent;
};

/// What a recipe does last. kComputed: arithmetic on its inputs, or another view of their bits.
enum class SourceKind : uint8_t {
  kLeaf,
  kCast,
  kTranspose,
  kConcat,
  kStack,
  kSlice,
  kReshape,
  kGroupOutput,
  kComputed
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
  /// The buffer must be 16-byte aligned.
  explicit Scratch(std::span<std::byte> buffer) : buffer_(buffer) {}
  /// The next `size` bytes (16-byte aligned). Asking for more than is left is a bug of ours.
  std::span<std::byte> take(size_t size);
  /// What take(size) uses up: the size rounded up to the alignment, or SIZE_MAX if that overflows.
  static size_t cost(size_t size);
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
  /// Scratch bytes, beyond the output, that read() needs at most for any box of up to so many elements. Does not
  /// decrease as `elements` grows; SIZE_MAX if it overflows.
  virtual size_t scratch_for(int64_t elements) const = 0;

  virtual SourceKind kind() const { return SourceKind::kLeaf; }
  /// The sources that this one is made of; none for a leaf.
  virtual std::span<const TensorSourcePtr> inputs() const { return {}; }
  /// Levels of inputs below this source, and sources in all, this one included.
  virtual int depth() const { return 0; }
  virtual int64_t node_count() const { return 1; }

  /// Set if the tensor's bytes lie unchanged in one file. Reshapes, slices of a leading range and joins of adjacent
  /// ranges keep it.
  virtual std::optional<FileRange> file_range() const { return std::nullopt; }
  /// Set if this is one output of a group that is best read once for all its outputs. Reshapes keep it.
  virtual SourceGroupPtr group() const { return nullptr; }
  /// Which output of its group this is.
  virtual size_t group_index() const { return 0; }

  int64_t elements() const;
  int64_t bytes() const;

  /// Streams elements [first, first + count) in row-major order, in blocks as large as fit: one buffer of at most
  /// `scratch_bytes` holds output and scratch, and besides it only a few small vectors are allocated. Too small a
  /// scratch is an error that names what is needed. Parallel workers each take a range; of a dtype of less than 8 bits
  /// a range begins and ends at a byte.
  Status stream_range(int64_t first, int64_t count, const ByteSink& sink, size_t scratch_bytes) const;
  /// The same in a buffer of the caller's (16-byte aligned), for many ranges in a row.
  Status stream_range(int64_t first, int64_t count, const ByteSink& sink, std::span<std::byte> buffer) const;
  Status stream_to(const ByteSink& sink, size_t scratch_bytes) const;

 private:
  Result<int64_t> block_for(int64_t count, size_t scratch_bytes) const;
  Status stream_blocks(int64_t first, int64_t count, int64_t block, const ByteSink& sink,
                       std::span<std::byte> buffer) const;
};

/// Several tensors computed in one read of one input: a quantised weight and its scales.
class SourceGroup {
 public:
  virtual ~SourceGroup() = default;
  virtual size_t size() const = 0;
  virtual DType dtype(size_t output) const = 0;
  virtual std::span<const int64_t> shape(size_t output) const = 0;
  virtual std::string recipe() const = 0;
  virtual std::span<const TensorSourcePtr> inputs() const = 0;
  /// Every output consists of so many parts of equal size, which are made from one part of the input each.
  virtual int64_t rows() const = 0;
  /// Streams rows [first, first + count) of all outputs, each to its sink in row-major order, reading the input once.
  /// The buffer is 16-byte aligned and holds outputs and scratch; one that is too small is an error.
  virtual Status stream_rows(int64_t first, int64_t count, std::span<const ByteSink> sinks,
                             std::span<std::byte> buffer) const = 0;
  Status stream_to(std::span<const ByteSink> sinks, size_t scratch_bytes) const;
  /// One output alone, as TensorSource::read and scratch_for.
  virtual Status read(size_t output, const Box& box, std::span<std::byte> out, Scratch& scratch) const = 0;
  virtual size_t scratch_for(size_t output, int64_t elements) const = 0;
};

/// Output `index` of a group as a source of its own (reads the input again if it is streamed alone).
TensorSourcePtr group_output(SourceGroupPtr group, size_t index);

// ---- Sources. Shapes, dims and sizes that do not fit are errors, found when the recipe is built, not when it is read.
// Dims count from 0 and are never negative. A recipe that changes nothing is the source itself, and nested ones are
// merged where the bytes stay the same, so that equal tensors tend to get equal recipes. Dtypes of less than 8 bits are
// taken where every box stays aligned to bytes: whole bytes along the last dim, which no transpose may move. ----

/// Bytes that a tensor takes; an error if a dim is negative, the size overflows, the rank exceeds kMaxTensorRank, or
/// the last dim of a dtype of less than 8 bits is not a whole number of bytes. For whoever writes a leaf.
Result<int64_t> checked_tensor_bytes(DType dtype, std::span<const int64_t> shape);
/// "f32[2, 3]"
std::string tensor_text(DType dtype, std::span<const int64_t> shape);

/// Bytes somewhere in memory that outlives the source: live weights. `owner` keeps it alive if given; `identity` names
/// it in the recipe.
Result<TensorSourcePtr> borrowed(std::span<const std::byte> bytes, DType dtype, std::vector<int64_t> shape,
                                 std::string identity, std::shared_ptr<const void> owner = nullptr);
/// Bytes of its own; for small constants. The recipe holds a SHA-256 of the content.
Result<TensorSourcePtr> literal(std::vector<std::byte> bytes, DType dtype, std::vector<int64_t> shape);
/// Row-major bytes of a shape whose contents are not known: for programs without weights. Reading fails with kNotFound.
Result<TensorSourcePtr> shape_only(DType dtype, std::vector<int64_t> shape, std::string name);
/// Converts elements by value, exactly as tensor/cast.h says: among f64, f32, f16 and bf16, from integers, bool and the
/// 8-bit floats of checkpoints to these, from integers and bool to integers that hold all their values, and from packed
/// dtypes to those of 8 bits (tensor/dequantize.h). What could lose an integer is refused:
/// floats to integers, integers to narrower ones.
Result<TensorSourcePtr> converted(TensorSourcePtr source, DType dtype);
/// Dim i of the result is dim permutation[i] of the source.
Result<TensorSourcePtr> transposed(TensorSourcePtr source, std::vector<int> permutation);
/// Dtypes and all dims but one must agree; at least one source.
Result<TensorSourcePtr> concatenated(std::vector<TensorSourcePtr> sources, int dim);
/// Along a new dim, dtypes and shapes equal; at least one source.
Result<TensorSourcePtr> stacked(std::vector<TensorSourcePtr> sources, int dim);
/// Indices [start, start + length) of one dim: what split and chunk are made of.
Result<TensorSourcePtr> sliced(TensorSourcePtr source, int dim, int64_t start, int64_t length);
/// The same elements in the same order; all dims are given (no -1).
Result<TensorSourcePtr> reshaped(TensorSourcePtr source, std::vector<int64_t> shape);
/// Whether two tensors of one dtype and shape have the same bytes. Equal recipes are not read; others are, block by
/// block up to the first that differs, with `scratch_bytes` for each and a block of about 1 MiB.
Result<bool> have_equal_bytes(const TensorSource& a, const TensorSource& b, size_t scratch_bytes);

}  // namespace argosy
