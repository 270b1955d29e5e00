#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/onnx/node_translator.h"
#include "backends/onnx/options.h"
#include "ir/op_table.h"
#include "passes/legalise.h"

namespace argosy::onnx {

/// How one op becomes ONNX. Compiled-in rows stand in constant arrays, one file per family in ops/.
struct Translation {
  std::string_view op;  // "aten.gelu.default"
  void (*emit)(const NodeTranslator&, const Translation&);
  std::string_view onnx_op = {};  // for emitters that serve several ops
  /// Why an op that has a decomposition has a row: the ONNX op that it is ("Softplus"), or what the row saves.
  std::string_view why = {};
  /// Whether the row can be used; null: always. Else the op is decomposed.
  bool (*is_taken)(const LoweringOptions&) = nullptr;
};

/// All rows: compiled in, and those that users add.
using Translations = OpTable<Translation>;
Translations all_translations();

/// Which nodes are legal: those that ONNX has a node for.
Takes taken_with(const LoweringOptions& options);

/// All compiled-in rows, sorted by op.
std::vector<Translation> translations();

/// What MoE and QMoE have in common, of ops with k, alpha, beta and limit.
Attributes experts_attributes(const NodeTranslator& e);

// Families, a file each in ops/.
std::span<const Translation> activation_translations();
std::span<const Translation> arithmetic_translations();
std::span<const Translation> attention_translations();
std::span<const Translation> control_flow_translations();
std::span<const Translation> convolution_translations();
std::span<const Translation> creation_translations();
std::span<const Translation> expert_translations();
std::span<const Translation> indexing_translations();
std::span<const Translation> linear_translations();
std::span<const Translation> normalization_translations();
std::span<const Translation> number_translations();
std::span<const Translation> order_translations();
std::span<const Translation> quantized_translations();
std::span<const Translation> recurrent_translations();
std::span<const Translation> reduction_translations();
std::span<const Translation> shape_translations();

}  // namespace argosy::onnx
