#include "passes/structures/structures.h"

#include <memory>
#include <string>
#include <vector>

namespace argosy {
namespace {

Pass in_plain_pytorch(std::string name, std::span<const Structure* const> rows) {
  std::vector<std::span<const RewriteRule>> rules;
  for (const Structure* structure : rows) rules.push_back(structure->plain);
  return apply_rules(std::move(name), std::make_shared<RuleTable>(rules));
}

}  // namespace

Pass decompose_structures() { return in_plain_pytorch("decompose-structures", structures()); }

Pass decompose_attention() { return in_plain_pytorch("decompose-attention", std::array{&attention_structure()}); }

}  // namespace argosy
