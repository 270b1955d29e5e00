#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

/// What a folder that an export wrote says of itself, in its bundle.json. OnnxExporter and ExecutorchExporter write
/// such folders (argosy/exporter.h).
namespace argosy {
inline namespace v1 {

/// Whether an export was compared with the model that it is of (docs/check.md).
struct CheckRecord {
  std::string kind;      // "twin", "full", "off" (not asked for), "none" (could not be done)
  std::string why;       // of off and none
  std::string compared;  // of twin and full: what ran and what came of it, in plain words
  std::string quality;   // of full: figures of what the export costs, as JSON; may be empty
};

/// A graph, and the component of the model that it is made of.
struct BundleGraph {
  std::string file, component;
  std::string method;  // of a program with methods
};

/// One of several ways in which a bundle stores a model.
struct BundleVariant {
  std::string name;  // "q4"
  CheckRecord check;
};

struct BundleDescription {
  std::string format;  // "argosy-onnx", "argosy-executorch"; "argosy-variants": a bundle in a folder for each variant
  std::string engine;  // that it is for
  std::string model_class, task, source;
  std::vector<std::string> options;  // that it was made with, as a command line has them
  std::vector<std::string> files;    // without bundle.json
  std::vector<BundleGraph> graphs;
  CheckRecord check;                    // of the first variant, or the only one
  std::vector<BundleVariant> variants;  // if there are several
};

Result<BundleDescription> read_bundle(const std::filesystem::path& folder);

}  // namespace v1
}  // namespace argosy
