#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/onnx/document.h"
#include "base/result.h"

/// Edits of backends/onnx/edit.h's kind for models with pictures and sound.
namespace argosy::onnx {

/// An input that nothing reads goes; one that something reads is an error.
Status drop_input(Model& model, std::string_view name);

/// What callers have instead of token types.
struct TokenTypeSource {
  std::string mask;                    // an input [batch, total]
  std::string tokens;                  // ids [batch, sequence]; becomes an input if it is none
  std::optional<int64_t> media_token;  // its places are of type 1, all others and the past of type 0
};
/// The input `name`, types of tokens [batch, total], is computed. Without a media token all types are 0 as long as
/// there is no past, and 1 from then on: a prompt whose tokens all see each other.
Status compute_token_types(Model& model, std::string_view name, const TokenTypeSource& source);

/// An output [n * rows, width] is [n, rows, width] for callers.
Status group_rows(Model& model, std::string_view output, int64_t rows);
/// An input [n, width] may be of any rank for callers: all dims but the last become one.
Status accept_grouped_rows(Model& model, std::string_view input);

/// How the patches of a picture are ordered: in blocks of merge_size x merge_size, and these in windows of
/// window x window blocks.
struct PatchOrder {
  int64_t merge_size = 1;
  int64_t window = 0;  // 0: no windows
  int64_t side = 0;    // of the square table of positions that a picture's are interpolated from; 0: there is none
};
/// The inputs position_ids [patches, 2], cu_seqlens, window_index and cu_window_seqlens, as far as the graph has them,
/// are computed from a new input `grid` [1, 3]: frames, rows and columns of one picture's patches. Whatever else
/// describes the picture stays an input.
Status compute_patch_positions(Model& model, std::string_view grid, const PatchOrder& order);

}  // namespace argosy::onnx
