#pragma once

#include <array>
#include <span>

#include "passes/aten_builder.h"

namespace argosy {

/// An op that is another one under another name: the same arguments in the same order.
struct Synonym {
  std::string_view op;      // "aten.multiply.Tensor"
  std::string_view schema;  // text of the one it becomes
};

bool rename_op(AtenBuilder& f);

/// Rules of a table of synonyms, which must outlive them.
template <size_t count>
constexpr std::array<RewriteRule, count> synonym_rules(const Synonym (&table)[count]) {
  std::array<RewriteRule, count> rules{};
  for (size_t i = 0; i < count; ++i) {
    rules[i] = {.op = table[i].op, .name = "synonym", .apply = write<rename_op>, .user_data = &table[i]};
  }
  return rules;
}

std::span<const RewriteRule> no_op_rules();           // normalise_no_ops.cpp
std::span<const RewriteRule> shape_rules();           // normalise_shapes.cpp
std::span<const RewriteRule> joining_rules();         // normalise_joins.cpp
std::span<const RewriteRule> creation_rules();        // normalise_creation.cpp
std::span<const RewriteRule> elementwise_rules();     // normalise_elementwise.cpp
std::span<const RewriteRule> elementwise_synonyms();  // normalise_elementwise.cpp
std::span<const RewriteRule> composite_rules();       // normalise_composites.cpp
std::span<const RewriteRule> diagonal_rules();        // normalise_diagonals.cpp
std::span<const RewriteRule> arrangement_rules();     // normalise_arrangements.cpp
std::span<const RewriteRule> arrangement_synonyms();  // normalise_arrangements.cpp
std::span<const RewriteRule> indexing_rules();        // normalise_indexing.cpp
std::span<const RewriteRule> indexing_synonyms();     // normalise_indexing.cpp
std::span<const RewriteRule> resize_rules();          // normalise_resize.cpp
std::span<const RewriteRule> wrapper_rules();         // normalise_wrappers.cpp
std::span<const RewriteRule> product_rules();         // normalise_products.cpp
std::span<const RewriteRule> product_synonyms();      // normalise_products.cpp
std::span<const RewriteRule> random_rules();          // normalise_random.cpp
std::span<const RewriteRule> number_rules();          // normalise_numbers.cpp
std::span<const RewriteRule> reduction_rules();       // normalise_reductions.cpp

}  // namespace argosy
