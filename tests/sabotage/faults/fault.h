#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "driver/export_hooks.h"

namespace argosy::sabotage {

/// One way to make an export wrong without making it fail. Exactly one of the functions is set. It returns whether it
/// found a place to spoil: a fault without one ends the export with an error, so that no row passes in vain.
struct Fault {
  std::string_view name;  // what ARGOSY_FAULT says
  std::string_view what;  // in a few words, for tables
  /// When a program is spoilt: kProgramRead, or the name of a pass after which.
  std::string_view stage = kProgramRead;
  Result<bool> (*program)(Program&) = nullptr;
  Result<bool> (*onnx)(std::vector<onnx::NamedModel>&) = nullptr;
  Result<bool> (*executorch)(executorch::Document&) = nullptr;
  /// It spoils an op of one engine's own. The check also runs the model without such ops; these graphs stay right.
  bool is_of_engine = false;
};

// By what they spoil; one file each.
std::span<const Fault> attention_faults();
std::span<const Fault> block_faults();
std::span<const Fault> document_faults();
std::span<const Fault> graph_faults();
std::span<const Fault> layer_faults();
std::span<const Fault> mask_faults();
std::span<const Fault> media_faults();
std::span<const Fault> quantized_faults();
std::span<const Fault> state_faults();
std::span<const Fault> weight_faults();

/// All of them.
std::vector<const Fault*> all_faults();

}  // namespace argosy::sabotage
