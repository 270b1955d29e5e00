#include "tensor/permute.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "tensor/box.h"

namespace argosy {
namespace {

struct Bytes16 {
  uint64_t low, high;
};

// out[i * out_step + j] = in[j * in_step + i] for i < rows, j < columns; steps in elements. Tiles pass through a
// buffer so that both sides are touched by whole cache lines, whatever their steps are: with steps that are powers of
// two, the lines of a tile would otherwise push each other out of the cache.
template <class T>
void transpose_tiles(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step, int64_t rows,
                     int64_t columns) {
  constexpr int64_t kRows = 64 / sizeof(T);      // one cache line of the input
  constexpr int64_t kColumns = 256 / sizeof(T);  // four of the output
  constexpr int64_t kSize = sizeof(T);
  alignas(64) T tile[kRows][kColumns];
  for (int64_t j0 = 0; j0 < columns; j0 += kColumns) {
    int64_t tile_columns = std::min(kColumns, columns - j0);
    for (int64_t i0 = 0; i0 < rows; i0 += kRows) {
      int64_t tile_rows = std::min(kRows, rows - i0);
      const std::byte* from = in + (j0 * in_step + i0) * kSize;
      std::byte* to = out + (i0 * out_step + j0) * kSize;
      if (tile_rows == kRows && tile_columns == kColumns) {
        for (int64_t j = 0; j < kColumns; ++j) {
          T line[kRows];
          std::memcpy(line, from + j * in_step * kSize, sizeof(line));
          for (int64_t i = 0; i < kRows; ++i) tile[i][j] = line[i];
        }
        for (int64_t i = 0; i < kRows; ++i) std::memcpy(to + i * out_step * kSize, tile[i], sizeof(tile[i]));
      } else {
        for (int64_t i = 0; i < tile_rows; ++i) {
          copy_runs(to + i * out_step * kSize, kSize, from + i * kSize, in_step * kSize, kSize, tile_columns);
        }
      }
    }
  }
}

using TransposeFunction = void (*)(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step, int64_t rows,
                                   int64_t columns);

TransposeFunction transpose_function(int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return transpose_tiles<uint8_t>;
    case 2: return transpose_tiles<uint16_t>;
    case 4: return transpose_tiles<uint32_t>;
    case 8: return transpose_tiles<uint64_t>;
    case 16: return transpose_tiles<Bytes16>;
    default: return nullptr;
  }
}

// A dim of the output: how many, and the steps in elements on both sides.
struct Dim {
  int64_t extent = 1;
  int64_t in_step = 1;
  int64_t out_step = 1;
};

// The dims of the output, outermost first, without those of one index, and adjacent ones that the input also has
// adjacent as one.
int collect_dims(std::span<const int64_t> extent, std::span<const int> permutation, Dim* dims) {
  int64_t in_steps[kMaxTensorRank];
  int64_t step = 1;
  for (size_t d = extent.size(); d-- > 0;) {
    in_steps[d] = step;
    step *= extent[d];
  }
  int rank = 0;
  for (int from : permutation) {
    int64_t count = extent[static_cast<size_t>(from)], in_step = in_steps[from];
    if (count == 1) continue;
    if (rank > 0 && dims[rank - 1].in_step == count * in_step) {
      dims[rank - 1].extent *= count;
      dims[rank - 1].in_step = in_step;
    } else {
      dims[rank++] = {count, in_step, 1};
    }
  }
  return rank;
}

}  // namespace

void permute_dims(std::span<const std::byte> in, std::span<const int64_t> extent, std::span<const int> permutation,
                  int64_t element_bytes, std::span<std::byte> out) {
  ARGOSY_CHECK(in.size() == out.size() && extent.size() == permutation.size() && extent.size() <= kMaxTensorRank,
               format("{} to {} bytes, rank {}", in.size(), out.size(), extent.size()));
  if (in.empty()) return;
  Dim dims[kMaxTensorRank];
  int rank = collect_dims(extent, permutation, dims);
  // What stays innermost is moved as one element.
  if (rank > 0 && dims[rank - 1].in_step == 1) {
    int64_t run = dims[--rank].extent;
    element_bytes *= run;
    for (int d = 0; d < rank; ++d) dims[d].in_step /= run;
  }
  if (rank == 0) {
    std::memcpy(out.data(), in.data(), in.size());
    return;
  }
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    dims[d].out_step = step;
    step *= dims[d].extent;
  }
  // The plane of the input's and the output's innermost dims is done by tiles, or by runs if elements are large; the
  // other dims are loops around it.
  Dim columns = dims[--rank];
  TransposeFunction transpose = transpose_function(element_bytes);
  Dim rows;
  if (transpose != nullptr) {
    int unit = static_cast<int>(std::find_if(dims, dims + rank, [](const Dim& d) { return d.in_step == 1; }) - dims);
    ARGOSY_CHECK(unit < rank, "no dim of step 1");
    rows = dims[unit];
    std::copy(dims + unit + 1, dims + rank, dims + unit);
    --rank;
  }
  int64_t index[kMaxTensorRank] = {};
  const std::byte* from = in.data();
  std::byte* to = out.data();
  while (true) {
    if (transpose != nullptr) {
      transpose(from, columns.in_step, to, rows.out_step, rows.extent, columns.extent);
    } else {
      copy_runs(to, element_bytes, from, columns.in_step * element_bytes, element_bytes, columns.extent);
    }
    int d = rank - 1;
    for (; d >= 0; --d) {
      from += dims[d].in_step * element_bytes;
      to += dims[d].out_step * element_bytes;
      if (++index[d] < dims[d].extent) break;
      from -= dims[d].in_step * dims[d].extent * element_bytes;
      to -= dims[d].out_step * dims[d].extent * element_bytes;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace argosy
