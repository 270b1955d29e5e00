#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace argosy::engines {

// What an engine wants changed at the border of a component's graph. They are data, carried out by the backend in
// their order (driver/bundle_graphs.h, backends/onnx/edit.h); names are those that hold when an edit's turn comes.

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
/// An input that nothing reads goes.
struct DropInput {
  std::string name;
};
/// Types of tokens [batch, total] are computed from what callers have (backends/onnx/edit_media.h).
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
/// An input [n, width] may be of any rank for callers.
struct AcceptGroupedRows {
  std::string input;
};
/// Outputs [n, width] become one under the first one's name, side by side (backends/onnx/edit_features.h).
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
/// An input goes: it is one everywhere, in the shape of another input.
struct AssumeOnes {
  std::string name, like;
};
/// A state that is empty along a dim may then have any size in its other dims.
struct AcceptEmptyState {
  std::string input;
  int dim = 2;
};
/// The decoder computes states that depend on another component's result only, when it is given empty ones, and gives
/// them back (backends/onnx/edit_cross_states.h).
struct ComputeCrossStates {
  struct State {
    std::string computed, input, output;  // the component's output; input and new output of this graph
  };
  std::string component;      // that computes them now: "encoder"
  std::string hidden_output;  // of that component: "last_hidden_state"
  std::string hidden_input;   // of this graph: "encoder_hidden_states"
  std::vector<State> states;
};
/// A graph that puts features into the embeddings of a text gives the embeddings alone; these inputs go.
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
                 RenameDim, OrderInputs, CastInput, AssumeOnes, AcceptEmptyState, ComputeCrossStates, DropFeatures>;

/// One graph of a bundle.
struct GraphPlan {
  std::string file;       // in the bundle: "onnx/model.onnx"
  std::string component;  // that it is made of
  std::vector<Edit> edits;
  std::string data_file;        // of weights, beside the graph; graphs of the same one share their weights
  uint64_t max_data_bytes = 0;  // of a data file; what does not fit is in NAME_1, NAME_2 and so on; 0: no limit
};

/// A graph when its weights have been laid out.
struct WrittenGraph {
  std::string file;       // as GraphPlan has it
  size_t data_files = 0;  // that its weights are in
};

/// A file that is written as it is.
struct TextFile {
  std::string name;
  std::string text;
};

/// What a bundle consists of, besides its manifest.
struct BundlePlan {
  std::vector<GraphPlan> graphs;
  std::vector<TextFile> files;
  std::vector<std::string> copied;  // files of the model's folder, under their own names
  std::string usage;                // how to run it, in Markdown, for the model card; may be empty
  std::vector<std::string> notes;   // what the user should know, a line each; also on the model card
};

}  // namespace argosy::engines
