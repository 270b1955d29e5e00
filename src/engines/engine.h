#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

struct LintRule;

/// What an engine's bundles need or cannot have, as far as a model's folder and the options of an export alone can show
/// it.
struct EngineLimits {
  std::span<const std::string_view> needed_files = {};  // of the model's folder
  std::span<const std::string_view> components = {};    // a model must have one of these; empty: any will do
  bool takes_bfloat16 = true;
  bool takes_linked_weights = true;
  bool takes_one_file = false;     // a graph alone, without a folder
  bool has_runtime_ops = false;    // it runs ops of ONNX Runtime's own (com.microsoft)
  bool has_variants = false;       // a bundle may have several, told by the names of their files
  bool switches_adapters = false;  // it feeds inputs that have defaults from files of LoRA adapters
  bool pads_at_end = false;        // shorter rows of a batch are filled up at their end, never in front
};

/// What runs a bundle. Another one is another row, and a folder beside this file.
struct Engine {
  std::string_view name;     // "genai": its name in commands, and that of its runner in python/argosy/run
  std::string_view title;    // "ONNX Runtime GenAI"
  std::string_view library;  // that opens its bundles, as model cards name it: "onnxruntime-genai"
  /// Graphs and files of a bundle of this model. What the engine cannot run is an error that says why.
  Result<BundlePlan> (*plan)(const SourceModel& model);
  /// What `argosy lint` looks for in this engine's bundles only.
  std::span<const LintRule> (*lint_rules)();
  /// Adds files that depend on how weights were laid out; null: there are none.
  Status (*finish)(const SourceModel& model, const std::vector<WrittenGraph>& graphs, BundlePlan& plan) = nullptr;
  std::string_view backend = "onnx";  // whose files it runs; for others than "onnx" plans have no graphs
  EngineLimits limits = {};
};

std::span<const Engine> all_engines();
/// Null if there is none of that name.
const Engine* find_engine(std::string_view name);

}  // namespace argosy::engines
