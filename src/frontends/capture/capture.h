#pragma once

#include <cstdint>

#include "base/result.h"
#include "frontends/capture/weight_plan.h"
#include "io/checkpoint.h"
#include "io/zip.h"
#include "ir/program.h"

namespace argosy {

/// The format version that is read (docs/capture-format.md).
inline constexpr int64_t kCaptureVersion = 1;

/// Reads a .capture file: each of its components, with schemas, storage ids and locations as the trace saw them.
/// Weights that the file does not hold are shape_only() until attach(). What only Python or the driver understands is
/// kept as attributes: "capture.<key>". `diagnostics` may be null.
Result<Program> read_capture(const ZipReader& zip, Diagnostics* diagnostics);

/// Whether a zip looks like a capture.
bool is_capture(const ZipReader& zip);

/// Gives the program's shape_only() weights the checkpoint's tensors of the same name, cast to the program's dtype
/// where that differs. Names every weight that is missing or has another shape, and changes nothing then.
///
/// Of weights that the capture ties, one that the checkpoint lacks gets what another has. Where it holds several, their
/// bytes are compared (read, one block at a time): equal ones are tied, a different one is not, and that is noted in
/// `diagnostics`, which may be null.
Status attach(Program& program, const Checkpoint& checkpoint, Diagnostics* diagnostics);
/// The same with the weights that the plan makes of the checkpoint's tensors. What the plan lists as missing is.
Status attach(Program& program, const WeightPlan& plan, const Checkpoint& checkpoint, Diagnostics* diagnostics);

}  // namespace argosy
