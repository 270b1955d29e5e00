#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/output.h"
#include "ir/program.h"

namespace argosy {

/// What happens to weights whose bytes are not known.
enum class MissingWeights : uint8_t {
  kRefuse,
  kLeaveEmpty,  // an entry without bytes, which torch.export.load silently takes for zeros
};

struct Pt2DocumentOptions {
  std::string root;  // the folder that all entries are in; torch takes the file's name without its extension
  MissingWeights missing_weights = MissingWeights::kRefuse;
  /// Example inputs, as torch calls them, by component, in torch's encoding. Components without an entry have none.
  std::map<std::string, TensorSourcePtr> sample_inputs;
};

/// An archive as it will be written: its entries in order, each a text or a tensor.
struct Pt2Document {
  struct Entry {
    std::string name;
    std::string text;
    TensorSourcePtr source;  // null: the text
  };
  std::string root;  // ends in "/"
  std::vector<Entry> entries;

  /// A file that torch.export.load returns in `extra_files`.
  void add_extra(std::string_view name, std::string text);
  /// Of all entries, without the zip's own headers.
  uint64_t content_bytes() const;
};

/// Lays out a verified program. Tied and equal weights share one entry. Nothing is read but their shapes.
Result<Pt2Document> build_pt2_document(const Program& program, const Pt2DocumentOptions& options);

/// The graph JSON of one component (schema 8.x).
Result<std::string> write_graph_json(const Program& program, const Component& component);

/// The name that a weight has in a component: without "<component>/", which sets apart weights of one name.
std::string_view weight_name_in(const Component& component, std::string_view name);

/// Whether torch would compute gradients for a parameter; only kept because torch writes it down.
bool requires_grad(const Program& program, const Component& component, WeightId weight);

}  // namespace argosy
