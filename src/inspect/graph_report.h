#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx/onnx_model.h"

namespace argosy {

/// A part of the model that nodes belong to by their names: "model.layers.0.self_attn/MatMul" is one of the part
/// self_attn of the part 0 of the part layers of the part model. Words are separated by '.' or '/'.
struct GraphPart {
  struct Item {
    bool is_part = false;
    uint32_t index = 0;  // of a part, or of a node
  };

  std::string name;         // its own word; "" of the whole graph
  uint32_t parent = 0;      // index; the whole graph, 0, is its own
  uint64_t nodes = 0;       // with those of parts in it
  uint32_t contents = 0;    // the same number in parts that hold the same: ops, numbers, sizes of weights, parts
  std::vector<Item> items;  // as they first appear in the graph
};

/// The whole graph first, every part after the one that it is in. Of a hostile graph, parts beyond a limit are left out
/// and their nodes belong to the part around them.
std::vector<GraphPart> graph_parts(const OnnxModel& model);

/// "model.layers.0"; "" of the whole graph.
std::string path_of(const std::vector<GraphPart>& parts, uint32_t part);

/// Whether a part is one of a list: its name is a number of at most nine digits.
bool is_numbered(const GraphPart& part);

/// Rising numbers as people say them: "0 to 4, 6 and 8 to 9"; long lists are cut.
std::string ranges_text(const std::vector<uint64_t>& numbers);

/// Parts of one list that hold the same.
struct AlikeParts {
  std::vector<uint32_t> parts;
  std::string numbers;  // "0 to 29"
};

/// The numbered parts of a part, equal ones together, in the order of the first of each.
std::vector<AlikeParts> alike_parts(const std::vector<GraphPart>& parts, uint32_t part);

/// By part: the layer that it belongs to, which is the outermost part that is numbered; 0: none.
std::vector<uint32_t> layers_of_parts(const std::vector<GraphPart>& parts);

/// What engines have fast ops for.
enum class StructureKind : uint8_t { kAttention, kNorm, kRotary };
std::string_view to_text(StructureKind kind);  // "attention", "norm", "rotary embedding"

/// One of these in a graph: an op that computes it, or the nodes in which it is written out.
struct FoundStructure {
  StructureKind kind = StructureKind::kAttention;
  bool is_op = true;
  uint32_t node = 0;  // the op; of one that is written out, a node in its middle
  std::string what;   // "com.microsoft.GroupQueryAttention (8 heads, 2 of keys)", "Softmax between two products"
  std::string why;    // of one that is written out: what in the graph is a reason for it; empty: nothing
};

/// In the order of nodes. What is written out in a way that is not known is not found.
std::vector<FoundStructure> find_structures(const OnnxModel& model);

/// How often the same was found.
struct FoundCount {
  FoundStructure first;
  uint64_t count = 0;
};

/// Layers in which the same was found, or what is outside of all layers.
struct FoundInLayers {
  std::string place;  // "model.layers 0 to 29"; "" outside
  uint64_t layers = 0;
  uint64_t nodes = 0;             // of all of these layers
  std::vector<FoundCount> found;  // by kind; may be empty
};

/// In the order of first layers, what is outside of them last.
std::vector<FoundInLayers> found_in_layers(const std::vector<GraphPart>& parts, const OnnxModel& model,
                                           const std::vector<FoundStructure>& found);

/// A state that callers carry from call to call, by its name: an input "past…", an output "present…".
struct CacheState {
  std::optional<uint32_t> input, output;  // indices of those of the model
  std::string dim;                        // the one that grows with the text; empty: none does
  std::optional<uint64_t> bytes;          // of a batch of one: for each token if it grows; none: sizes are not known
  std::string joined_by;                  // the op that reads the input and gives the output, if it is one
};

/// All states that grow along one dim, or that do not grow, or whose sizes are not known.
struct CacheTotal {
  bool is_known = true;
  std::string dim;
  uint64_t states = 0;
  uint64_t bytes = 0;  // as above
  /// With so many tokens; nullopt: not known, or more than fits 64 bits.
  std::optional<uint64_t> bytes_at(uint64_t tokens) const;
};

std::vector<CacheState> cache_states(const OnnxModel& model);
/// Those that grow first, by dim; those that are not known last.
std::vector<CacheTotal> cache_totals(const std::vector<CacheState>& states);

/// The lengths of texts that reports give sizes of caches for.
inline constexpr uint64_t kReportedTokens[] = {1024, 4096, 32768};

/// An ONNX graph as people look at it.
struct GraphReport {
  std::vector<GraphPart> parts;
  std::vector<FoundStructure> found;
  std::vector<FoundInLayers> layers;
  std::vector<CacheState> states;
  std::vector<CacheTotal> caches;
};

/// Of a model whose nodes were read. Linear in nodes, values and the length of names.
GraphReport report_graph(const OnnxModel& model);

/// "Gemm", "com.microsoft.Attention".
std::string onnx_op_name(std::string_view domain, std::string_view op_type);

}  // namespace argosy
