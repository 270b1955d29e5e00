#include "passes/legalise.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "passes/decompose/families.h"
#include "passes/rewrite_rules.h"
#include "passes/structures/structures.h"

namespace argosy {
namespace {

std::vector<std::span<const RewriteRule>> families() {
  std::vector<std::span<const RewriteRule>> all = {
      decompose::activation(),  decompose::arithmetic(),      decompose::arrangement(), decompose::attention(),
      decompose::convolution(), decompose::creation(),        decompose::einsum(),      decompose::indexing(),
      decompose::losses(),      decompose::norms(),           decompose::order(),       decompose::pooling(),
      decompose::products(),    decompose::recurrent(),       decompose::reductions(),  decompose::resize(),
      decompose::scatter(),     decompose::size_arithmetic(),
  };
  for (const Structure* structure : structures()) all.push_back(structure->portable);
  return all;
}

}  // namespace

Pass legalise(std::string_view backend, Takes takes) {
  return apply_rules(format("legalise-for-{}", backend), std::make_shared<const RuleTable>(families()),
                     std::move(takes));
}

std::vector<std::string_view> decomposed_ops() {
  std::vector<std::string_view> ops;
  for (std::span<const RewriteRule> family : families()) {
    for (const RewriteRule& rule : family) ops.push_back(rule.op);
  }
  std::ranges::sort(ops);
  ops.erase(std::ranges::unique(ops).begin(), ops.end());
  return ops;
}

}  // namespace argosy
