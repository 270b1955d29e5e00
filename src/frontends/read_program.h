#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "ir/program.h"
#include "tensor/source.h"

namespace argosy {

struct ReadOptions {
  /// Schemas of ops, one text a line (tools/write_op_schemas.py writes it from an installed torch). Needed for .pt2
  /// archives, which do not carry them; a .capture does, and IR text declares its own. Empty: builtin_schemas() only.
  std::filesystem::path schemas;
  /// Gets every error where one run can find several (each unknown op once), in order; the returned error is then the
  /// first of them. May be null.
  Diagnostics* diagnostics = nullptr;
  /// Gets the sample inputs that a .pt2 archive carries, by component: torch's own bytes, never interpreted, so that
  /// they can be written back. May be null.
  std::map<std::string, TensorSourcePtr>* sample_inputs = nullptr;
};

/// What a file is, by its contents (a zip's entries) and, for text, its extension (.ir).
enum class ProgramFormat : uint8_t { kPt2, kCapture, kText };
Result<ProgramFormat> program_format(const std::filesystem::path& path);

/// Reads a .pt2 archive, a .capture file or IR text. Weights become sources that read the file when asked; what the
/// file holds no bytes of is shape_only(). The program is well-formed as far as its reader goes; call verify() for the
/// whole.
Result<Program> read_program(const std::filesystem::path& path, const ReadOptions& options);

}  // namespace argosy
