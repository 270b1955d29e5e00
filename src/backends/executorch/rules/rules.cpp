#include "backends/executorch/rules.h"

#include <vector>

#include "backends/executorch/rules/families.h"

namespace argosy::executorch {
namespace {

std::vector<RewriteRule> joined(std::initializer_list<std::span<const RewriteRule>> families) {
  std::vector<RewriteRule> all;
  for (std::span<const RewriteRule> family : families) all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace

std::span<const RewriteRule> composite_rules() {
  static const std::vector<RewriteRule> kAll =
      joined({attention_rules(), activation_rules(), arithmetic_rules(), convolution_rules(), creation_rules(),
              einsum_rules(), expert_rules(), indexing_rules(), norm_rules(), order_rules(), pooling_rules(),
              product_rules(), recurrent_rules(), reduction_rules(), resize_rules(), scatter_rules()});
  return kAll;
}

std::span<const RewriteRule> kernel_rules() {
  static const std::vector<RewriteRule> kAll =
      joined({product_kernel_rules(), convolution_kernel_rules(), norm_kernel_rules(), pooling_kernel_rules()});
  return kAll;
}

}  // namespace argosy::executorch
