#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "border/edit.h"
#include "ir/program.h"
#include "passes/pass.h"

namespace argosy {

/// Carries out edits on a component of a functional, normalised program. The component need not be one of the
/// program's, but components that edits name must be. Unused nodes stay in the graph, for eliminate-dead-code.
Status apply_edits(Program& program, Component& component, std::span<const Edit> edits);

/// One graph that is to be written.
struct BoundGraph {
  std::string file;  // for messages
  std::string component;
  std::vector<Edit> edits;
};

/// "bind-graphs": the program's components become those of the graphs, in their order; one component may become
/// several. After functionalise and normalise.
Pass bind_graphs(std::vector<BoundGraph> graphs);

}  // namespace argosy
