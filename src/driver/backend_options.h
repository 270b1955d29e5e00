#pragma once

#include <memory>
#include <string>

#include "backends/executorch/generation/task.h"
#include "backends/executorch/options.h"
#include "backends/executorch/writer.h"
#include "backends/onnx/options.h"

namespace argosy {

struct ExportHooks;
struct OwnEngine;
class RuleTable;

struct OnnxOptions {
  onnx::LoweringOptions lowering;
  onnx::WeightsMode weights = onnx::WeightsMode::kCopy;
  std::string engine = "plain";                 // a name of engines/engine.h: what the folder is for
  std::shared_ptr<const OwnEngine> own_engine;  // of a package (onnx/own_engine.h), based on `engine`; null: none
  std::string device = "cpu";              // a name of engines/device.h: what graphs may have of the engine's own ops
  bool missing_weights_as_inputs = false;  // those whose bytes are not known; else they are an error
  std::shared_ptr<const RuleTable> rules;  // of a program that links the library (user_rules.h); null: none
  const ExportHooks* hooks = nullptr;      // of tests (export_hooks.h)
};

struct ExecutorchOptions {
  executorch::LoweringOptions lowering;
  executorch::TaskOptions task;  // an empty name: components become methods as they are
  executorch::DataPlace data = executorch::DataPlace::kInside;
  std::string shape;                       // sizes of dims, "batch=1,sequence=1..2048"; a number alone fixes one
  std::shared_ptr<const RuleTable> rules;  // as those of OnnxOptions
  const ExportHooks* hooks = nullptr;      // of tests (export_hooks.h)
};

struct Pt2Options {
  std::shared_ptr<const RuleTable> rules;  // as those of OnnxOptions
  const ExportHooks* hooks = nullptr;      // of tests (export_hooks.h)
};

/// Options of all backends; each uses its own.
struct BackendOptions {
  OnnxOptions onnx;
  ExecutorchOptions executorch;
  Pt2Options pt2;

  /// Of tests (export_hooks.h); must outlive the exports.
  void set_hooks(const ExportHooks* hooks) { pt2.hooks = onnx.hooks = executorch.hooks = hooks; }
  void set_rules(const std::shared_ptr<const RuleTable>& rules) { pt2.rules = onnx.rules = executorch.rules = rules; }
};

}  // namespace argosy
