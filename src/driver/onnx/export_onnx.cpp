#include "driver/onnx/export_onnx.h"

#include <utility>

#include "base/check.h"
#include "driver/onnx/bundle_export.h"
#include "driver/onnx/variant_folders.h"
#include "driver/validate_export.h"
#include "engines/engine.h"

namespace argosy {
namespace {

/// Whether all variants are in one bundle.
bool is_one_bundle(const OnnxVariant& variant) {
  const engines::Engine* engine = engines::find_engine(variant.options.engine);
  return engine != nullptr && engine->limits.has_variants;
}

/// All but the last step.
Result<std::unique_ptr<OnnxExport>> built(const OnnxVariant& variant, const ExportDestination& destination,
                                          Diagnostics& diagnostics) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(variant.input.capture));
  ARGOSY_TRY(Program program, read_export_program(variant.input, diagnostics));
  auto made = std::make_unique<OnnxExport>(variant.name, destination, variant.input.checkpoint, std::move(manifest));
  if (variant.is_kept) made->keep(is_one_bundle(variant) ? destination.path : destination.path / variant.name);
  ARGOSY_TRY_STATUS(made->build(std::move(program), variant.options, variant.input, diagnostics));
  return made;
}

}  // namespace

Result<std::unique_ptr<Export>> prepare_onnx(const ExportInput& input, const ExportDestination& destination,
                                             const OnnxOptions& options, Diagnostics& diagnostics) {
  ARGOSY_TRY(std::unique_ptr<OnnxExport> made, built({"", input, options}, destination, diagnostics));
  ARGOSY_TRY_STATUS(made->complete({}, diagnostics));
  return made;
}

Result<std::unique_ptr<Export>> prepare_onnx_variants(std::vector<OnnxVariant> variants,
                                                      const ExportDestination& destination, Diagnostics& diagnostics) {
  ARGOSY_CHECK(!variants.empty(), "an export of no variant");
  ARGOSY_CHECK(destination.is_folder, "several variants for one file, which validate_export() refuses");
  const bool is_whole = is_one_bundle(variants[0]);
  std::vector<std::unique_ptr<OnnxExport>> made;
  for (const OnnxVariant& variant : variants) {
    ARGOSY_TRY(std::unique_ptr<OnnxExport> each, built(variant, destination, diagnostics));
    if (!is_whole) ARGOSY_TRY_STATUS(each->complete({}, diagnostics));
    made.push_back(std::move(each));
  }
  if (is_whole) {
    std::unique_ptr<OnnxExport> first = std::move(made[0]);
    made.erase(made.begin());
    ARGOSY_TRY_STATUS(first->complete(std::move(made), diagnostics));
    return first;
  }
  std::vector<VariantFolder> folders;
  for (size_t i = 0; i < made.size(); ++i)
    folders.push_back({variants[i].name, std::move(made[i]), variants[i].is_kept});
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(variants[0].input.capture));
  return variant_folders(std::move(folders), destination, variants[0].input.checkpoint, manifest.root());
}

}  // namespace argosy
