#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cache/capture_key.h"
#include "cache/obtain.h"
#include "driver/validate_export.h"
#include "options.h"
#include "python_failure.h"
#include "terminal.h"

namespace argosy::cli {

/// Pythons to use, best first: the one that ARGOSY_PYTHON names and no other; else that of the environment that this
/// program is installed in, even if it is not active, then those on PATH. In a virtual environment both names are its
/// own; without one many systems have only the second.
std::vector<std::string> candidate_pythons(const Environment& environment);

/// Looks at the components that a capture will have, before they are traced; an error ends the work.
using ComponentHook = std::function<Status(std::span<const ComponentDims> components)>;

/// What `python -m argosy.capture` and `python -m argosy.capture.weight_plan` make, from the cache where it is there.
struct PythonWork {
  CacheKind kind = CacheKind::kCapture;
  CaptureRequest request;
  std::string key;
  std::string checkpoint_hash;  // of a plan: headers_hash() of what it is for
  bool renew = false;
  ComponentHook check_components;  // of a capture that is made; may be empty
};

/// Runs `python -m module` to its end, in the terminal's stage; `why` is for the log and for errors. Lines that are
/// progress (JSON with a "stage") are shown as the terminal shows progress, and those that list components
/// ("components", with the dims of each) are handed to `check_components`. An error: there is no Python, it cannot be
/// started, or the hook's.
Result<PythonEnd> run_module(const std::string& module, const std::vector<std::string>& arguments,
                             const std::string& why, const Environment& environment, Terminal& terminal,
                             const ComponentHook& check_components = {});

/// Python is started only if the cache has no entry, and that is a stage of the terminal's. If it fails, the error says
/// why and where all that it said is kept.
Result<Obtained> obtain_by_python(const PythonWork& work, const Environment& environment, Terminal& terminal);

/// What the user asks for, of the model in `folder`, and what the environment adds.
CaptureRequest capture_request(const GraphOptions& options, const std::filesystem::path& folder,
                               const Environment& environment);

/// The work for a capture, and for the plan of a checkpoint's weights, which neither shape nor components matter to.
Result<PythonWork> capture_work(const CaptureRequest& request);
/// Opens the adapter in that folder, if it is not empty, beside the model's own tensors, for a plan that merges it.
Status add_adapter(const std::string& adapter, Checkpoint& checkpoint, CaptureRequest& request);
/// The same for adapters that are kept apart, folders by names.
Status add_adapters_apart(const std::map<std::string, std::string>& adapters, Checkpoint& checkpoint,
                          CaptureRequest& request);
Result<PythonWork> weight_plan_work(const CaptureRequest& request, const Checkpoint& checkpoint);

}  // namespace argosy::cli
