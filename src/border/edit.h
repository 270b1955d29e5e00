#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace argosy {

// Changes that an engine wants at the border of a component's graph. They are data, carried out in order by
// bind_graphs() (border/bind_graphs.h); each uses the names that hold when its turn comes. An edit that names an input
// or output that the graph lacks is an error.

struct RenameInput {
  std::string from, to;
};
struct RenameOutput {
  std::string from, to;
};
/// Removes the output, and the nodes that only it needs.
struct DropOutput {
  std::string name;
};
/// A state whose last dim is wider for callers than inside: the input is cut, the output filled up with zeros.
struct WidenState {
  std::string input, output;
  int64_t size = 0;
};
/// Removes an input that nothing reads, or that is read only for sizes that other inputs have too.
struct DropInput {
  std::string name;
};
/// Computes the types of tokens [batch, total] from inputs that callers have.
struct ComputeTokenTypes {
  std::string input;                   // "token_type_ids"
  std::string mask, tokens;            // inputs [batch, total] and [batch, sequence]; the second is added if need be
  std::optional<int64_t> media_token;  // none: 0 for a first prompt, 1 for all that follows
};
/// An output [n * rows, width] is [n, rows, width] for callers.
struct GroupRows {
  std::string output;
  int64_t rows = 0;
};
/// An input [n, width] may have any rank for callers: all dims but the last are merged. A graph cannot declare such an
/// input, so it is noted for writers in the component's attributes.
inline constexpr std::string_view kAnyRank = "border.any_rank";
struct AcceptGroupedRows {
  std::string input;
};
/// Joins outputs [n, width] side by side into one, under the first one's name.
struct JoinOutputs {
  std::vector<std::string> outputs;
};
/// Features that deeper layers of a decoder want travel beside the embeddings of their tokens.
struct SpreadFeatures {
  std::string features;                   // input that is widened by the others
  std::vector<std::string> more_inputs;   // inputs that are removed
  std::string embeddings, mask;           // outputs; the mask says which tokens have features, and is removed
  std::vector<std::string> more_outputs;  // outputs that are removed
};
/// The same in the decoder, which takes the features off again.
struct TakeSpreadFeatures {
  std::string embeddings, mask;
  std::vector<std::string> features;
};
/// Positions and boundaries of one picture's patches are computed from its grid [1, 3], a new input.
struct ComputePatchPositions {
  std::string grid;
  int64_t merge_size = 1;  // patches of a block are merge_size x merge_size
  int64_t window = 0;      // blocks of a window are window x window; 0: no windows
  int64_t side = 0;        // of the square table that positions are interpolated from; 0: there is none
};
/// Renames a dim of inputs and outputs; does nothing if there is none of that name.
struct RenameDim {
  std::string from, to;
};
/// These inputs become the last ones, in this order.
struct OrderInputs {
  std::vector<std::string> names;
};
/// Callers give an input as another dtype ("bool").
struct CastInput {
  std::string name, dtype;
};
/// Removes an input that has the same number everywhere. Its sizes are those of another input, or numbers.
struct FillInput {
  std::string name, like;
  int64_t value = 1;
};
/// Where a state is empty along a dim, callers may give it any sizes in its other dims.
struct AcceptEmptyState {
  std::string input;
  int dim = 2;
};
/// The decoder itself computes states that depend on another component's result only: the nodes between that
/// component's hidden states and the states are copied, fed by the decoder's input of hidden states. They must need
/// nothing but weights and sizes of the hidden states.
struct ComputeCrossStates {
  struct State {
    std::string computed, input;  // the component's output, the input of this graph
    /// The output that gives it back: the state is then computed only if the inputs of the states are empty in their
    /// third dim. No name, in all states or in none: the state is always computed, and its input is removed.
    std::string output;
  };
  std::string component;      // that computes them now: "encoder"
  std::string hidden_output;  // of that component: "last_hidden_state"
  std::string hidden_input;   // of this graph: "encoder_hidden_states"
  std::vector<State> states;
};
/// For a graph that puts features of pictures or sounds into a text's embeddings: it gives what it would give for a
/// text without features; these inputs are removed. Such places are found as selections and scatters that take their
/// other operand where there is no feature; a graph that uses features in another way is an error.
struct DropFeatures {
  std::vector<std::string> inputs;
};
/// An output of fixed sizes but for the first dim, which an engine may let share memory with the input that it follows:
/// it is written when `last`, another output, is known, when nothing reads that input any more.
struct PostponeOutput {
  std::string output, last;
};

/// An output [batch, tokens, width] has only the last token of each row for callers: the last one of the call that
/// `mask`, an input [batch, all tokens], is not 0 for.
struct KeepLastLogits {
  std::string output, mask;
};

/// What LoRA adapters add to products with the weights of these modules ("model.layers.0.self_attn.q_proj") is computed
/// beside them, from two new inputs a module, [in, rank] and [rank, out] with any rank. A module whose weight the entry
/// graph does not multiply with is an error.
enum class AdapterMatrix : uint8_t { kDown, kUp };
inline std::string adapter_input(const std::string& module, AdapterMatrix matrix) {
  return module + (matrix == AdapterMatrix::kDown ? ".lora_A.weight" : ".lora_B.weight");
}
struct AttachAdapters {
  std::vector<std::string> modules;
};

using Edit = std::variant<RenameInput, RenameOutput, DropOutput, WidenState, PostponeOutput, DropInput,
                          ComputeTokenTypes, GroupRows, AcceptGroupedRows, JoinOutputs, SpreadFeatures,
                          TakeSpreadFeatures, ComputePatchPositions, RenameDim, OrderInputs, CastInput, FillInput,
                          AcceptEmptyState, ComputeCrossStates, DropFeatures, KeepLastLogits, AttachAdapters>;

}  // namespace argosy
