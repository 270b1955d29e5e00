#include "backends/onnx/translations.h"

#include <algorithm>
#include <array>

#include "backends/onnx/own_nodes.h"

namespace argosy::onnx {
namespace {

auto families() {
  return std::array{
      activation_translations(),  arithmetic_translations(),    attention_translations(), control_flow_translations(),
      convolution_translations(), creation_translations(),      expert_translations(),    indexing_translations(),
      linear_translations(),      normalization_translations(), number_translations(),    order_translations(),
      quantized_translations(),   recurrent_translations(),     reduction_translations(), shape_translations(),
  };
}

}  // namespace

Translations all_translations() { return Translations(families(), Translations::Duplicates::kAllow); }

Takes taken_with(const LoweringOptions& options) {
  return [options](const Program& program, const Component&, const argosy::Graph&, const argosy::Node& node) {
    static const Translations all = all_translations();
    const std::string& op = program.schemas[node.op].name;
    std::span<const Translation* const> rows = all.find(op);
    if (own_translation(program, op) != nullptr) return true;
    return !rows.empty() && (rows.back()->is_taken == nullptr || rows.back()->is_taken(options));
  };
}

std::vector<Translation> translations() {
  std::vector<Translation> rows;
  for (std::span<const Translation> family : families()) rows.insert(rows.end(), family.begin(), family.end());
  std::ranges::sort(rows, {}, &Translation::op);
  return rows;
}

}  // namespace argosy::onnx
