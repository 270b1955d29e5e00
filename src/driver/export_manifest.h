#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/json.h"
#include "ir/program.h"
#include "passes/quantized_weights.h"

namespace argosy {

/// The name of the manifest among an archive's extra files, where torch.export.load hands it out.
inline constexpr std::string_view kExportManifest = "argosy.json";
/// The name of the manifest in a folder of models.
inline constexpr std::string_view kBundleManifest = "bundle.json";
/// The key of the manifest that tells of an engine of a package.
inline constexpr std::string_view kOwnEngineKey = "registered_engine";
/// The key of an ONNX model's metadata that holds the manifest of its component. Keys of other facts begin with
/// "argosy.", too.
inline constexpr std::string_view kOnnxManifestKey = "argosy.manifest";

/// Bytes; larger manifests are refused.
inline constexpr uint64_t kMaxManifest = uint64_t{64} << 20;

/// Whether the export was compared with the model that it is of.
struct ExportCheck {
  std::string kind = "none";  // twin, full, off (not asked for), none (could not be done)
  std::string why;            // of off and none
  std::string compared;       // of twin and full: what ran and what came of it, in plain words
  std::string quality = {};   // of full: figures of what the export costs, a JSON object; may be empty

  /// One line for people.
  std::string text() const;
};

/// capture.json of a capture.
Result<JsonDocument> read_capture_manifest(const std::filesystem::path& capture);

/// A graph of a bundle, and the component that it is made of.
struct ManifestGraph {
  std::string file, component;
  std::vector<std::pair<std::string, std::string>> renamed;  // ports: their names in the component and in the file
  // Of a program with methods:
  std::string method;
  std::vector<std::string> inputs, outputs;   // in the order in which they are passed
  std::vector<std::vector<int64_t>> largest;  // sizes of each input; none for a number
};

/// One of the ways in which a bundle stores a model.
struct ManifestVariant {
  std::string name;
  std::vector<ManifestGraph> graphs;
  std::vector<QuantizedWeight> quantized;
  ExportCheck check;
};

/// A LoRA adapter that is kept apart, and its file.
struct ManifestAdapter {
  std::string name, file;
};

struct ManifestOptions {
  std::string_view format;     // "argosy-pt2"
  std::string_view component;  // the one that the file holds; empty: all of them
  ExportCheck check;
  std::string_view engine;                                // that a folder is for
  std::string_view own_engine, own_package, own_version;  // an engine of a package, based on `engine`; empty: none
  std::string_view device;                                // that graphs are for; empty: the CPU
  std::vector<ManifestGraph> graphs;
  std::vector<std::string> files;  // of a folder
  std::vector<QuantizedWeight> quantized;
  std::vector<ManifestAdapter> adapters;
  std::vector<ManifestVariant> variants;  // if there are several; the first is what the rest describes
  std::optional<DType> dtype;             // of most weights, where the file does not show it
  // Of a folder:
  std::string_view source, commit;   // of the model: its name, and what of the Hub; may be empty
  std::vector<std::string> options;  // that it was made with, as a command line has them
};

/// The dtype that most numbers of a program's weights have, before any are quantised; none if there are no floats.
std::optional<DType> weights_dtype(const Program& program);

/// "128 weights of linear layers stored as 8da4w, a scale for 32 values each": a line for each encoding.
std::vector<std::string> quantized_lines(const std::vector<QuantizedWeight>& weights);

/// The text of the manifest of a folder that has a bundle in a folder each for `variants`.
std::string folders_manifest(const std::vector<std::string>& variants, const std::vector<std::string>& files);

/// The text of the manifest: versions, class and task of the model, its components with their dims and how they feed
/// each other.
std::string export_manifest(JsonView capture, const ManifestOptions& options);

}  // namespace argosy
