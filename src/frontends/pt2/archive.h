#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "frontends/schema_library.h"
#include "io/zip.h"
#include "ir/program.h"

namespace argosy {

struct Pt2ReadOptions {
  const SchemaLibrary* schemas = nullptr;  // never null
  Diagnostics* diagnostics = nullptr;
  std::map<std::string, TensorSourcePtr>* sample_inputs = nullptr;  // see ReadOptions
};

/// Reads an archive of torch.export.save: each model of it becomes a component. Weights stay in the file. Nothing is
/// ever unpickled.
Result<Program> read_pt2(const ZipReader& zip, const Pt2ReadOptions& options);

/// Whether a zip looks like such an archive.
bool is_pt2(const ZipReader& zip);

}  // namespace argosy
