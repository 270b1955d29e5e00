#pragma once

#include <cstdint>
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

using Edit = std::variant<RenameInput, RenameOutput, DropOutput, WidenState>;

/// One graph of a bundle.
struct GraphPlan {
  std::string file;       // in the bundle: "onnx/model.onnx"
  std::string component;  // that it is made of
  std::vector<Edit> edits;
  std::string data_file;  // of weights, beside the graph; graphs of the same one share their weights
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
