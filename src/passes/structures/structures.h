#pragma once

#include <array>
#include <span>
#include <string_view>

#include "passes/rewrite_rules.h"

namespace argosy {

/// An op for a sub-graph that engines may have a fast op for. Captures hold it whole. A backend that takes it
/// translates it; for others `legalise` writes it in other ops. One file for each, in this folder.
struct Structure {
  std::string_view schema;  // of the op, as captures have it
  /// Writes it in plain PyTorch ops, with the same values as the op's own kernel: for programs that PyTorch runs.
  std::span<const RewriteRule> plain;
  /// Writes it in ops that backends without such a kernel have: for `legalise`. Often the same rules.
  std::span<const RewriteRule> portable;
};

/// argosy::attention.
const Structure& attention_structure();
/// transformers::grouped_mm_fallback: the rows of each expert times that expert's matrix.
const Structure& experts_structure();

/// argosy::rotary.
const Structure& rotary_structure();

inline std::array<const Structure*, 3> structures() {
  return {&attention_structure(), &experts_structure(), &rotary_structure()};
}

/// "decompose-structures": writes all structures in plain PyTorch ops.
Pass decompose_structures();
/// "decompose-attention": only attention, for a backend that looks for scaled_dot_product_attention before it
/// legalises.
Pass decompose_attention();

}  // namespace argosy
