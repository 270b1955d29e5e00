#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace argosy {

// What an engine wants changed at the border of a component's graph. They are data, carried out in their order by
// bind_graphs() (border/bind_graphs.h); names are those that hold when an edit's turn comes. One that names an input or
// output that the graph lacks is an error.

struct RenameInput {
  std::string from, to;
};
struct RenameOutput {
  std::string from, to;
};
/// The output goes, and what computes nothing else.
struct DropOutput {
  std::string name;
};
/// A state whose last dim is wider for callers than inside: the input is cut, the output filled up with zeros.
struct WidenState {
  std::string input, output;
  int64_t size = 0;
};
/// An input goes that nothing reads, or only for sizes that other inputs have too.
struct DropInput {
  std::string name;
};
/// Types of tokens [batch, total] are computed from what callers have.
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
/// An input [n, width] may be of any rank for callers: all dims but the last become one. Graphs cannot say that of an
/// input, so that it is a note for writers, in the component's attributes.
inline constexpr std::string_view kAnyRank = "border.any_rank";
struct AcceptGroupedRows {
  std::string input;
};
/// Outputs [n, width] become one under the first one's name, side by side.
struct JoinOutputs {
  std::vector<std::string> outputs;
};
/// Features that deeper layers of a decoder want travel beside the embeddings of their tokens.
struct SpreadFeatures {
  std::string features;                   // input that has the others beside it
  std::vector<std::string> more_inputs;   // which go
  std::string embeddings, mask;           // outputs; the second says which tokens have features, and goes
  std::vector<std::string> more_outputs;  // which go
};
/// The other end, in the decoder.
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
/// A dim that inputs and outputs have by name; nothing happens if there is none.
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
/// An input goes: it is one number everywhere. Its sizes are those of another input, or numbers.
struct FillInput {
  std::string name, like;
  int64_t value = 1;
};
/// A state that is empty along a dim may then have any size in its other dims.
struct AcceptEmptyState {
  std::string input;
  int dim = 2;
};
/// The decoder computes states that depend on another component's result only: what lies between that component's
/// hidden states and them comes along, fed by the decoder's input of hidden states. It must need nothing else than
/// weights and sizes of the hidden states.
struct ComputeCrossStates {
  struct State {
    std::string computed, input;  // the component's output, the input of this graph
    /// What the graph is to give it back as. Then it is computed only where the inputs of the states are empty, in
    /// their third dim. Empty, in all states or in none: the inputs go.
    std::string output;
  };
  std::string component;      // that computes them now: "encoder"
  std::string hidden_output;  // of that component: "last_hidden_state"
  std::string hidden_input;   // of this graph: "encoder_hidden_states"
  std::vector<State> states;
};
/// A graph that puts features of pictures or sounds at places of a text's embeddings gives what it would give if no
/// place took a feature; these inputs go. Such places are found as selections and scatters that take their other
/// operand where there is no feature; a graph that uses features in another way is an error.
struct DropFeatures {
  std::vector<std::string> inputs;
};
/// An output of fixed sizes but for the first dim, which an engine may let share memory with the input that it follows:
/// it is written when `last`, another output, is known, when nothing reads that input any more.
struct PostponeOutput {
  std::string output, last;
};

using Edit =
    std::variant<RenameInput, RenameOutput, DropOutput, WidenState, PostponeOutput, DropInput, ComputeTokenTypes,
                 GroupRows, AcceptGroupedRows, JoinOutputs, SpreadFeatures, TakeSpreadFeatures, ComputePatchPositions,
                 RenameDim, OrderInputs, CastInput, FillInput, AcceptEmptyState, ComputeCrossStates, DropFeatures>;

}  // namespace argosy
