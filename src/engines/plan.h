#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "border/edit.h"

namespace argosy::engines {

/// One graph of a bundle.
struct GraphPlan {
  std::string file;       // in the bundle: "onnx/model.onnx"
  std::string component;  // that it is made of
  std::vector<Edit> edits;
  std::string data_file;        // of weights, beside the graph; graphs of the same one share their weights
  uint64_t max_data_bytes = 0;  // of a data file; what does not fit is in NAME_1, NAME_2 and so on; 0: no limit
  std::vector<Edit> further_edits = {};  // if the graph may be optimised for the engine
};

/// A graph when its weights have been laid out.
struct WrittenGraph {
  std::string file;        // as GraphPlan has it
  size_t data_files = 0;   // how many hold its weights
  size_t kept_caches = 0;  // inputs that ops of the engine's own read and continue, and nothing else reads
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
  int64_t longest_text = 0;         // tokens that the engine takes at most, as it is configured; 0: no such limit
};

}  // namespace argosy::engines
