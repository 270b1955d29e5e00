#pragma once

#include <string>

#include "inspect/graph_report.h"

namespace argosy {

/// The parts of a graph as a tree to open and close, part of a page. Numbered parts that hold the same are shown once.
std::string graph_tree_html(const OnnxModel& model, const GraphReport& report);

}  // namespace argosy
