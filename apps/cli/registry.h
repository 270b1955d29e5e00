#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/obtain.h"
#include "options.h"
#include "registry/registry.h"
#include "terminal.h"

namespace argosy::cli {

/// Of a key or a hash, in what is printed.
inline constexpr size_t kShownDigits = 12;

/// The environment with the registry that a command line names, if it names one, and its keys besides.
Environment with_registry(const Environment& environment, const RegistryOptions& options);

/// The registry that the environment names. An error if there is none, or if no key is trusted.
Result<Registry> open_registry(const Environment& environment);

/// Whether what a registry gave is for this model, and not for another one.
using FitsRequest = std::function<Status(const std::filesystem::path& path)>;

/// Lets obtain() ask the registry, if the environment names one. What is refused is a warning: the work goes on
/// without.
void ask_registry(CacheWork& work, const FitsRequest& fits, const Environment& environment, Terminal& terminal);

/// Refuses a capture of another configuration than that of the model's folder.
Status check_configuration(const std::filesystem::path& capture, const std::filesystem::path& model);

}  // namespace argosy::cli
