#include "engines/engine.h"
#include "engines/genai/genai.h"
#include "engines/optimum/optimum.h"
#include "engines/plain/plain.h"
#include "engines/transformersjs/transformersjs.h"

namespace argosy::engines {
namespace {

constexpr Engine kEngines[] = {
    {"genai", "ONNX Runtime GenAI", plan_genai},
    {"transformersjs", "transformers.js", plan_transformersjs, finish_transformersjs},
    {"optimum", "Optimum ONNX", plan_optimum},
    {"plain", "any runtime of ONNX models", plan_plain},
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
