#pragma once

#include <string_view>

#include "engines/model.h"

namespace argosy::engines {

/// What a model is for, as transformers' pipelines and the Hub's tags name it ("text-generation"), by its class and its
/// ports; empty if they do not tell.
std::string_view pipeline_task(const SourceModel& model);

/// Whether the Hub lists models under this name.
bool is_pipeline_tag(std::string_view name);

}  // namespace argosy::engines
