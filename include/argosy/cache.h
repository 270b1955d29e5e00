#pragma once

#include <filesystem>

#include "argosy/cache_request.h"
#include "argosy/exporter.h"
#include "base/result.h"

/// Exports of a model that was captured before, by the command or on another machine, without Python:
///
///     auto model = argosy::open_cached({.model = "llama/", .cache = "cache/"});
///     auto bundle = argosy::OnnxExporter().run(model->capture, model->checkpoint,
///                                              {.output = "out", .weight_plan = model->weight_plan});
namespace argosy {
inline namespace v1 {

/// All that an exporter needs of a model.
struct CachedModel {
  Capture capture;
  Checkpoint checkpoint;
  std::filesystem::path weight_plan;
};

/// Finds the capture and the weight plan that the command uses for this model, by its configuration and the names of
/// its tensors. The error of a cache that lacks one says how it is made. Of captures that
/// differ in packages which extend Argosy, one of a Python without such packages comes first.
Result<CachedModel> open_cached(const CacheRequest& request);

}  // namespace v1
}  // namespace argosy
