#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/pt2/writer.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// An archive as it will be written: its entries in order, each a text or a tensor.
struct Pt2Document {
  struct Entry {
    std::string name;
    std::string text;
    TensorSourcePtr source;  // null: the text
  };
  std::vector<Entry> entries;
};

Result<Pt2Document> build_pt2_document(const Program& program, const Pt2WriteOptions& options);

/// The graph JSON of one component (schema 8.x).
Result<std::string> write_graph_json(const Program& program, const Component& component);

/// The name that a weight has in a component: without "<component>/", which sets apart weights of one name.
std::string_view weight_name_in(const Component& component, std::string_view name);

/// Whether torch would compute gradients for a parameter; only kept because torch writes it down.
bool requires_grad(const Program& program, const Component& component, WeightId weight);

}  // namespace argosy
