#include "engines/engine.h"
#include "engines/executorch/executorch.h"
#include "engines/genai/genai.h"
#include "engines/lint_rule.h"
#include "engines/optimum/optimum.h"
#include "engines/plain/plain.h"
#include "engines/transformersjs/transformersjs.h"

namespace argosy::engines {
namespace {

constexpr Engine kEngines[] = {
    {"genai", "ONNX Runtime GenAI", plan_genai, lint_genai_rules},
    {"transformersjs", "transformers.js", plan_transformersjs, lint_transformersjs_rules, finish_transformersjs},
    {"optimum", "Optimum ONNX", plan_optimum, lint_optimum_rules},
    {"executorch", "ExecuTorch", plan_executorch, lint_executorch_rules, nullptr, "executorch"},
    {"plain", "any runtime of ONNX models", plan_plain, lint_plain_rules},
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
