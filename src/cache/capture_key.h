#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"

namespace argosy {

/// What is asked for when a model is captured. Everything in it but folders, files and the way of tracing is
/// part of the key as it is; of the files of inputs it is what is in them.
struct CaptureRequest {
  std::filesystem::path model;  // the folder with config.json
  std::string task;             // empty: what the model's class is for
  std::string shape;            // narrows dims, as the user wrote it
  std::string variant;          // of the patches, where a backend needs one of its own
  std::string dtype = "auto";   // of the weights: auto (the configuration's), float32, float16 or bfloat16
  std::string extensions;       // others' code that captures are made with, as a text; empty: none
  std::vector<std::filesystem::path> inputs;  // files of what forward is called with; none: Python makes inputs
  std::string trace = "stamped";              // or "whole", which gives the same graphs
  bool prefill = false;
  bool trust_remote_code = false;
  std::filesystem::path adapter;  // a folder with adapter_config.json, for weight plans; empty: none
  std::map<std::string, std::filesystem::path> adapters_apart;  // such folders by names, which are not merged
};

/// Fields of a configuration, at any depth, that leave a capture's bytes alone whatever their value. The only ones that
/// a key leaves out; argosy.capture leaves them out of the capture too.
std::span<const std::string_view> ignored_configuration_fields();

/// A configuration in one form: members sorted, numbers in their shortest text, ignored fields left out. Takes what
/// Python writes: NaN and infinities are no error.
Result<std::string> canonical_configuration(std::string_view text, std::string_view name);

/// The name of a request in the cache, 64 hexadecimal digits: a hash of everything that can change the capture. Where
/// the folder brings code of its own, that is in it too.
Result<std::string> capture_key(const CaptureRequest& request);

/// What of a request matters to a plan of weights, too: neither shapes nor which components there are.
CaptureRequest for_weight_plan(CaptureRequest request);

/// The same for the plan of a checkpoint's weights: adds the names, dtypes and shapes of its tensors, and what the
/// configuration says of their quantisation, and the adapters' configurations. The checkpoint has the adapters'
/// tensors.
Result<std::string> weight_plan_key(const CaptureRequest& request, const Checkpoint& checkpoint);

}  // namespace argosy
