#pragma once

#include <string>

#include "inspect/graph_report.h"
#include "inspect/inspect.h"

namespace argosy {

/// A page of its own (no scripts, nothing loaded) that shows an ONNX graph: its interface, what was recognised in which
/// layers, its parts layer by layer to open and close, caches, ops and weights. Long lists are cut, and say so: of the
/// graph it shows the first 20,000 rows. Both reports are of one model.
std::string graph_html(const std::string& title, const OnnxReport& report, const GraphReport& graph);

/// "f32[batch, 4]"; a dim without a size or a name reads "?".
std::string type_text(const OnnxValue& value);
/// "f32[4, 8]"
std::string type_text(const OnnxInitializer& tensor);

}  // namespace argosy
