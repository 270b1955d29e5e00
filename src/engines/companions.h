#pragma once

#include <string>
#include <vector>

#include "engines/model.h"

namespace argosy::engines {

/// The files of a model's folder that travel with every bundle: configuration, generation settings, tokenizer,
/// processor, chat templates, licence. Weights, code and other people's exports do not.
std::vector<std::string> companion_files(const SourceModel& model);

/// Companion files that are not copied, as they are links out of the folder.
std::vector<std::string> left_out_companions(const SourceModel& model);

}  // namespace argosy::engines
