#include "engines/engine.h"
#include "engines/executorch/executorch.h"
#include "engines/genai/genai.h"
#include "engines/lint_rule.h"
#include "engines/optimum/optimum.h"
#include "engines/plain/plain.h"
#include "engines/transformersjs/transformersjs.h"

namespace argosy::engines {
namespace {

// The engine opens tokenizers with these.
constexpr std::string_view kGenaiFiles[] = {"tokenizer.json", "tokenizer_config.json"};

// The engine generates text, with one of these.
constexpr std::string_view kGenaiComponents[] = {"decode", "decoder"};

constexpr EngineLimits kGenaiLimits = {.needed_files = kGenaiFiles,
                                       .components = kGenaiComponents,
                                       .has_runtime_ops = true,
                                       .switches_adapters = true,
                                       .pads_at_end = true};
constexpr EngineLimits kTransformersjsLimits = {
    .takes_bfloat16 = false, .takes_linked_weights = false, .has_variants = true};
constexpr EngineLimits kOptimumLimits = {.takes_bfloat16 = false, .has_runtime_ops = true};
constexpr EngineLimits kPlainLimits = {.takes_one_file = true};

constexpr Engine kEngines[] = {
    {"genai", "ONNX Runtime GenAI", "onnxruntime-genai", plan_genai, lint_genai_rules, finish_genai, "onnx",
     kGenaiLimits},
    {"transformersjs", "transformers.js", "transformers.js", plan_transformersjs, lint_transformersjs_rules,
     finish_transformersjs, "onnx", kTransformersjsLimits},
    {"optimum", "Optimum ONNX", "optimum", plan_optimum, lint_optimum_rules, nullptr, "onnx", kOptimumLimits},
    {"executorch", "ExecuTorch", "executorch", plan_executorch, lint_executorch_rules, nullptr, "executorch"},
    {"plain", "any runtime of ONNX models", "onnxruntime", plan_plain, lint_plain_rules, nullptr, "onnx", kPlainLimits},
};

}  // namespace

std::span<const Engine> all_engines() { return kEngines; }

const Engine* find_engine(std::string_view name) {
  for (const Engine& engine : kEngines) {
    if (engine.name == name) return &engine;
  }
  return nullptr;
}

}  // namespace argosy::engines
