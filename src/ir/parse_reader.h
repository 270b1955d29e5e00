#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/parse_lexer.h"
#include "ir/schema.h"
#include "ir/text_syntax.h"

namespace argosy {

/// Reads the parts that IR text is made of: punctuation, names, numbers, types and arguments. Every read either leaves
/// the text behind what it took, or fails with an error that points at the offending token.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : lexer_(text) {}

  Lexer& lexer() { return lexer_; }
  const Token& token() const { return lexer_.token(); }
  bool is_at_end() const { return token().kind == TokenKind::kEnd; }

  /// Takes the token if it is this punctuation or word.
  bool accept(char punctuation);
  bool accept(std::string_view word);
  Status expect(char punctuation);
  Status expect(std::string_view word);
  /// "expected …, found …" at the current token.
  tl::unexpected<Error> unexpected(std::string_view expected) const;
  tl::unexpected<Error> error_at(const Token& token, std::string_view message, std::string hint = {}) const;

  Result<std::string> read_string();
  /// A word, or a string in its place.
  Result<std::string> read_word(std::string_view what);
  /// The name of a value or weight, without its sigil.
  Result<std::string> read_name(TokenKind kind, std::string_view what);
  Result<int64_t> read_integer(int64_t min, int64_t max);
  Result<int64_t> read_integer() { return read_integer(INT64_MIN, INT64_MAX); }
  Result<uint32_t> read_index();
  Result<double> read_double();

  /// Symbolic expressions and types belong to the component that is being read. Undeclared symbols come into being.
  void use(std::shared_ptr<SymContext> symbols);
  Result<SymExpr> read_expression();
  /// "f32[s0, 768] strides [768, 1]", "int(s0)", "bool".
  Result<ValueType> read_type();

  /// An argument. Values are looked up in `graph`; null: there are none here. `type` decides what a list without a name
  /// is.
  Result<Argument> read_argument(const Graph* graph, const SchemaType& type, int depth = 0);

  /// Where "graph:1" was read, since the graph may come later; the caller empties it.
  struct GraphReference {
    GraphId graph;
    Token token;
  };
  std::vector<GraphReference>& graph_references() { return graph_references_; }

 private:
  Result<Argument> read_number();
  Result<Argument> read_named(const Graph* graph, const SchemaType& type, int depth);
  Result<Argument> read_list(ListKind kind, const Graph* graph, const SchemaType& type, int depth);
  Result<IntItem> read_int_item(const Graph* graph);
  Result<ValueId> read_value(const Graph* graph);
  Result<Argument> read_device();
  Result<Argument> read_complex();
  Result<double> read_nan();
  Result<std::vector<SymExpr>> read_dims();

  Lexer lexer_;
  std::shared_ptr<SymContext> symbols_;
  std::unordered_map<std::string_view, SymExpr> expressions_;  // by text, of symbols_
  std::vector<GraphReference> graph_references_;
};

}  // namespace argosy
