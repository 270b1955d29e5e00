#include "passes/structures/recognise.h"

#include <array>
#include <memory>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"

namespace argosy {
namespace {

bool join_permutations(AtenBuilder& f) {
  const Node* inner = f.made_by(f["self"], "aten.permute.default");
  if (inner == nullptr) return false;
  std::optional<std::vector<int64_t>> first = numbers(inner->arguments[1]), second = numbers(f.argument("dims"));
  if (!first || !second) return false;
  std::vector<int64_t> order;
  bool changes_nothing = true;
  for (int64_t dim : *second) {
    order.push_back((*first)[static_cast<size_t>(dim)]);
    changes_nothing = changes_nothing && order.back() + 1 == static_cast<int64_t>(order.size());
  }
  ValueId source = AtenBuilder::operand(*inner, 0);
  return f.replace(changes_nothing ? source : f.permute(source, order));
}

bool join_reshapes(AtenBuilder& f) {
  const Node* inner = f.made_by(f["self"], "aten.reshape.default");
  if (inner == nullptr) return false;
  ValueId source = AtenBuilder::operand(*inner, 0);
  if (f.shape(source) == f.result().shape) return f.replace(source);
  return f.become(aten::kReshape, {{"self", source}, {"shape", f.argument("shape")}});
}

constexpr RewriteRule kViewJoins[] = {
    {.op = "aten.permute.default", .name = "join-permutations", .apply = write<join_permutations>},
    {.op = "aten.reshape.default", .name = "join-reshapes", .apply = write<join_reshapes>},
};

}  // namespace

Pass recognise() {
  return apply_rules("recognise",
                     std::make_shared<RuleTable>(std::array{attention_rules(), rms_norm_rules(), rotary_rules()}));
}

Pass join_views() {
  return apply_rules("join-views", std::make_shared<RuleTable>(std::array{std::span<const RewriteRule>(kViewJoins)}));
}

}  // namespace argosy
