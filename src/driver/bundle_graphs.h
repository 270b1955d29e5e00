#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/onnx/writer.h"
#include "base/result.h"
#include "engines/plan.h"

namespace argosy {

/// Models of components, by name.
using ComponentModels = std::map<std::string, onnx::Model, std::less<>>;

/// The graphs of a bundle, made of the components' models as the plan says; `file` of each is the plan's, with its
/// folder.
Result<std::vector<onnx::NamedModel>> bundle_graphs(const ComponentModels& components, const engines::BundlePlan& plan);

}  // namespace argosy
