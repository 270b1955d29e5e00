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

/// What an engine's bundles cannot do without, or not have: what can be told from a model's folder and the options of
/// an export alone.
struct EngineLimits {
  std::span<const std::string_view> needed_files = {};  // of the model's folder
  std::span<const std::string_view> components = {};    // of which a model has one at least; none: any will do
  bool takes_bfloat16 = true;
  bool takes_linked_weights = true;
  bool takes_one_file = false;  // a graph alone, without a folder
};

/// What runs a bundle. Another one is another row, and a folder beside this file.
struct Engine {
  std::string_view name;   // "genai": as commands call it, and python/argosy/run its runner
  std::string_view title;  // "ONNX Runtime GenAI"
  /// Graphs and files of a bundle of this model. What the engine cannot run is an error that says why.
  Result<BundlePlan> (*plan)(const SourceModel& model);
  /// What `argosy lint` looks for in its bundles, besides what it looks for in all.
  std::span<const LintRule> (*lint_rules)();
  /// Adds files that depend on how weights were laid out; null: there are none.
  Status (*finish)(const SourceModel& model, const std::vector<WrittenGraph>& graphs, BundlePlan& plan) = nullptr;
  std::string_view backend = "onnx";  // whose files it runs; plans of others have no graphs
  EngineLimits limits = {};
};

std::span<const Engine> all_engines();
/// Null if there is none of that name.
const Engine* find_engine(std::string_view name);

}  // namespace argosy::engines
