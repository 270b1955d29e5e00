#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/parse_reader.h"
#include "ir/program.h"
#include "ir/rewriter.h"

namespace argosy {

/// Reads graphs of one program. Everything that a Rewriter insists on is checked here first, so that bad text is an
/// error and never an internal one.
class GraphTextReader {
 public:
  GraphTextReader(TextReader& text, Program& program) : text_(text), program_(program) {
    // Text of n bytes may stand for this many arguments that it leaves out: far more than any real schema needs, and
    // still linear.
    default_budget_ = 8 * text.lexer().text_size() + 100'000;
  }

  Status add_weight(Weight weight, const Token& at);
  Result<WeightId> read_weight_name();

  /// "(%x: f32[2]) weights (%w = @w) { … }", behind the word "graph" and its number.
  Result<Graph> read(SymContext& symbols);

 private:
  struct Definition {
    NewValue value;
    bool has_type = false;
  };
  Result<Definition> read_definition(const Graph& graph);
  Status read_inputs(Rewriter& rewriter);
  Status read_weights(Rewriter& rewriter, SymContext& symbols);
  Status read_node(Rewriter& rewriter);
  Result<OpId> read_op();
  Result<std::vector<Argument>> read_arguments(const Graph& graph, const OpSchema& schema, const Token& op);
  Status fill_defaults(const OpSchema& schema, std::vector<std::optional<Argument>>& given, const Token& op);
  Result<LocationId> read_location();
  Status read_return(Rewriter& rewriter);

  TextReader& text_;
  Program& program_;
  std::unordered_map<std::string, WeightId> weights_;
  size_t default_budget_ = 0;
};

}  // namespace argosy
