#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "argosy/export_options.h"
#include "base/result.h"

/// Between the public classes and the library, which have classes of the same names: neither side sees the other's.
namespace argosy::api {

struct OpenCapture {
  std::filesystem::path path;
  std::string model_class;
  std::vector<std::string> components;
};
struct OpenCheckpoint;

Result<std::shared_ptr<const OpenCapture>> open_capture(const std::filesystem::path& path);
Result<std::shared_ptr<const OpenCheckpoint>> open_checkpoint(const std::filesystem::path& path);
size_t tensor_count(const OpenCheckpoint& checkpoint);
uint64_t total_bytes(const OpenCheckpoint& checkpoint);

/// One of several ways in which an export stores a model.
struct VariantCall {
  std::string name;  // of driver/variants.h
  std::string capture, weight_plan;
};

/// What an exporter of any backend is asked for.
struct ExportCall {
  std::string backend;  // a name of driver/backends.h
  std::filesystem::path output, weight_plan;
  std::string dtype;                   // or a variant; empty: as captured
  std::filesystem::path seen_values;   // of mixed16, or 8a8w; may be empty
  std::vector<std::string> arguments;  // what the backend lets choose, as the command has it: "--opset=18"
  std::vector<VariantCall> variants;   // in the place of one capture, weight plan and dtype
  std::vector<OpRule> rules;
  int threads = 1;
  size_t scratch_bytes = 0;
  ExportProgress progress;
};

/// Problems beyond the first are part of the error's message. With variants `capture` means nothing.
Result<ExportedBundle> export_model(const OpenCapture& capture, const OpenCheckpoint& checkpoint,
                                    const ExportCall& call);

}  // namespace argosy::api
