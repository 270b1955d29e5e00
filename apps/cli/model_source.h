#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "options.h"
#include "terminal.h"

namespace argosy::cli {

/// What a command reads of a model.
enum class ModelParts : uint8_t {
  kConfiguration,  // config.json
  kWeights,        // and the checkpoint
};

/// The folder of the model that a user names. ORG/NAME comes from the Hub's cache if all that is needed is there,
/// without a request; else `python -m argosy.hub` downloads what is missing, unless the user wants to stay offline.
/// Which commit is used is told. With --offline, processes that are started later make no request either.
Result<std::filesystem::path> obtain_model(const ModelOptions& options, ModelParts parts,
                                           const Environment& environment, Terminal& terminal);

/// What of it the Hub's cache lacks, in words; empty if nothing has to be downloaded.
Result<std::string> missing_parts(const ModelOptions& options, ModelParts parts, const Environment& environment);

}  // namespace argosy::cli
