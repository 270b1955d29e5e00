#pragma once

#include <string>

#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::transformersjs {

/// How to run the bundle, in Markdown.
std::string usage(const SourceModel& model, const BundlePlan& plan);

}  // namespace argosy::engines::transformersjs
