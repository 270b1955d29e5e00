#include "tensor/source.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/text.h"
#include "tensor/box.h"
#include "tensor/source_derived.h"

namespace argosy {
namespace {

constexpr size_t kAlignment = 16;

// One block's bytes and the scratch to make them.
size_t footprint(const TensorSource& source, int64_t elements) {
  return saturating_add(scratch_cost(source.dtype(), elements), source.scratch_for(elements));
}

// The most elements, in whole units and at most `count`, whose footprint fits; 0 if none do.
int64_t largest_block(const TensorSource& source, int64_t count, size_t scratch_bytes) {
  if (footprint(source, count) <= scratch_bytes) return count;
  int64_t unit = elements_per_unit(source.dtype());
  int64_t fits = 0, too_many = count / unit;
  while (too_many - fits > 1) {
    int64_t middle = fits + (too_many - fits) / 2;
    (footprint(source, middle * unit) <= scratch_bytes ? fits : too_many) = middle;
  }
  return fits * unit;
}

}  // namespace

std::span<std::byte> Scratch::take(size_t size) {
  ARGOSY_CHECK(reinterpret_cast<uintptr_t>(buffer_.data()) % kAlignment == 0, "scratch is not aligned");
  size_t taken = cost(size);
  ARGOSY_CHECK(taken <= buffer_.size() - used_,
               format("{} bytes of scratch asked for, {} of {} in use", size, used_, buffer_.size()));
  std::span<std::byte> result = buffer_.subspan(used_, size);
  used_ += taken;
  return result;
}

size_t Scratch::cost(size_t size) {
  return size > std::numeric_limits<size_t>::max() - kAlignment ? std::numeric_limits<size_t>::max()
                                                                : (size + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t TensorSource::elements() const {
  auto count = element_count(shape());
  ARGOSY_CHECK(count.has_value(), recipe());
  return *count;
}

int64_t TensorSource::bytes() const { return bytes_of(dtype(), elements()); }

Result<int64_t> TensorSource::block_for(int64_t count, size_t scratch_bytes) const {
  int64_t block = largest_block(*this, count, scratch_bytes);
  if (block > 0) return block;
  return fail(ErrorCode::kInvalidInput,
              format("a scratch of {} bytes is too small to stream {}", scratch_bytes, quoted(recipe())),
              format("give at least {} bytes of scratch", footprint(*this, elements_per_unit(dtype()))));
}

Status TensorSource::stream_blocks(int64_t first, int64_t count, int64_t block, const ByteSink& sink,
                                   std::span<std::byte> buffer) const {
  int64_t unit = elements_per_unit(dtype()), total = elements();
  ARGOSY_CHECK(first >= 0 && count >= 0 && first <= total - count && first % unit == 0 && count % unit == 0,
               format("{} elements from {} of {}", count, first, recipe()));
  Box box;
  for (int64_t done = 0; done < count;) {
    int64_t step = contiguous_box(shape(), first + done, std::min(block, count - done), box);
    Scratch scratch(buffer);
    std::span<std::byte> out = scratch.take(static_cast<size_t>(bytes_of(dtype(), step)));
    ARGOSY_TRY_STATUS(read(box, out, scratch));
    ARGOSY_TRY_STATUS(sink(out));
    done += step;
  }
  return {};
}

Status TensorSource::stream_range(int64_t first, int64_t count, const ByteSink& sink, size_t scratch_bytes) const {
  if (count == 0) return {};
  ARGOSY_TRY(int64_t block, block_for(count, scratch_bytes));
  size_t size = footprint(*this, block);
  auto memory = std::make_unique_for_overwrite<std::byte[]>(size);
  return stream_blocks(first, count, block, sink, std::span<std::byte>(memory.get(), size));
}

Status TensorSource::stream_range(int64_t first, int64_t count, const ByteSink& sink,
                                  std::span<std::byte> buffer) const {
  if (count == 0) return {};
  ARGOSY_TRY(int64_t block, block_for(count, buffer.size()));
  return stream_blocks(first, count, block, sink, buffer);
}

Status TensorSource::stream_to(const ByteSink& sink, size_t scratch_bytes) const {
  return stream_range(0, elements(), sink, scratch_bytes);
}

Result<int64_t> checked_tensor_bytes(DType dtype, std::span<const int64_t> shape) {
  if (shape.size() > kMaxTensorRank) {
    return fail(ErrorCode::kInvalidInput, format("a tensor of {} dims, {} is the most", shape.size(), kMaxTensorRank));
  }
  if (std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; })) {
    return fail(ErrorCode::kInvalidInput, format("negative dim in {}", tensor_text(dtype, shape)));
  }
  auto count = element_count(shape);
  // In bits, so that every later product of a part of the shape and the size of an element fits too.
  if (!count || !checked_mul(*count, bits_of(dtype))) {
    return fail(ErrorCode::kInvalidInput, format("the size of {} overflows", tensor_text(dtype, shape)));
  }
  int64_t unit = elements_per_unit(dtype);
  if (*count > 0 && (shape.empty() ? 1 : shape.back()) % unit != 0) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("rows of {} are not a whole number of bytes", tensor_text(dtype, shape)),
                format("make the last dim of {} a multiple of {}, or store it as u8", to_text(dtype), unit));
  }
  return bytes_of(dtype, *count);
}

std::string list_text(std::span<const int64_t> values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += format("{}{}", i == 0 ? "" : ", ", values[i]);
  return text + ']';
}

std::string tensor_text(DType dtype, std::span<const int64_t> shape) {
  return format("{}{}", to_text(dtype), list_text(shape));
}

size_t scratch_cost(DType dtype, int64_t elements) {
  auto bits = checked_mul(elements, bits_of(dtype));
  return bits ? Scratch::cost(static_cast<size_t>(*bits + 7) / 8) : std::numeric_limits<size_t>::max();
}

DerivedSource::DerivedSource(SourceKind kind, DType dtype, std::vector<int64_t> shape,
                             std::vector<TensorSourcePtr> inputs)
    : kind_(kind), dtype_(dtype), shape_(std::move(shape)), inputs_(std::move(inputs)) {
  for (const TensorSourcePtr& source : inputs_) {
    depth_ = std::max(depth_, source->depth() + 1);
    node_count_ += source->node_count();
  }
}

Status check_recipe_limits(std::span<const TensorSourcePtr> inputs) {
  int depth = 1;
  int64_t nodes = 1;
  for (const TensorSourcePtr& source : inputs) {
    ARGOSY_CHECK(source != nullptr, "a recipe over a null source");
    depth = std::max(depth, source->depth() + 1);
    nodes += std::min(source->node_count(), kMaxRecipeNodes);  // the sum stays far from overflow
  }
  if (depth > kMaxRecipeDepth) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("a recipe of {} nested steps, {} is the most", depth, kMaxRecipeDepth),
                "write the tensor once and continue from the file");
  }
  if (nodes > kMaxRecipeNodes) {
    return fail(ErrorCode::kUnsupportedFeature, format("a recipe of {} parts, {} is the most", nodes, kMaxRecipeNodes),
                "write the tensor once and continue from the file");
  }
  return {};
}

Status check_dim(const char* what, int dim, size_t rank) {
  if (dim >= 0 && static_cast<size_t>(dim) < rank) return {};
  return fail(ErrorCode::kInvalidInput, format("{} along dim {} of {} dims", what, dim, rank),
              rank == 0 ? "a scalar has no dims" : format("dims count from 0 to {}", rank - 1));
}

}  // namespace argosy
