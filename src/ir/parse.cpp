#include <algorithm>
#include <climits>
#include <set>

#include "base/checked_math.h"
#include "base/text.h"
#include "ir/parse_graph.h"
#include "ir/text.h"

namespace argosy {
namespace {

/// Reads a whole program: lines of the program, and components with their lines and graphs.
class ProgramReader {
 public:
  explicit ProgramReader(std::string_view text) : text_(text), graphs_(text_, program_) {}

  Result<Program> read() {
    while (!text_.is_at_end()) ARGOSY_TRY_STATUS(read_item());
    if (has_implied_) {
      ARGOSY_TRY_STATUS(finish_component());
      program_.components.push_back(std::move(component_));
    }
    return std::move(program_);
  }

 private:
  Status read_item() {
    Token at = text_.token();
    if (text_.accept("schema")) return read_schema();
    if (text_.accept("attribute")) return read_attribute(program_.attributes);
    if (text_.accept("weight")) return read_weight();
    if (at.is("component")) {
      if (has_implied_) {
        return text_.error_at(at, "a component beside lines that belong to the only one",
                              "put all symbols, inputs, outputs and graphs into components");
      }
      text_.lexer().advance();
      return read_component();
    }
    // Lines of a component that stand alone make up the component "model".
    if (!has_implied_) {
      if (!program_.components.empty()) return text_.unexpected("schema, attribute, weight or component");
      start_component("model");
      has_implied_ = true;
    }
    ARGOSY_TRY(bool is_read, read_component_item());
    if (!is_read) {
      return text_.unexpected(
          "schema, attribute, weight, component, symbol, dim_name, guard, specialized, input, output or graph");
    }
    return {};
  }

  Status read_schema() {
    Token at = text_.token();
    Result<OpId> added = OpId{};
    if (at.kind == TokenKind::kString) {
      ARGOSY_TRY(std::string schema, text_.read_string());
      added = program_.schemas.add(schema);
    } else {
      std::string_view line = text_.lexer().take_line();
      added = program_.schemas.add(line);
    }
    if (!added) return fail(text_.lexer().error_at(at.text, added.error().message, added.error().hint));
    return {};
  }

  Status read_attribute(std::map<std::string, std::string>& attributes) {
    Token at = text_.token();
    ARGOSY_TRY(std::string key, text_.read_word("the attribute's name"));
    ARGOSY_TRY_STATUS(text_.expect('='));
    ARGOSY_TRY(std::string value, text_.read_string());
    if (!attributes.emplace(std::move(key), std::move(value)).second) {
      return text_.error_at(at, format("attribute {} occurs twice", at.describe()));
    }
    return {};
  }

  Status read_weight() {
    Token at = text_.token();
    Weight weight;
    ARGOSY_TRY(weight.name, text_.read_name(TokenKind::kWeightName, "a weight"));
    ARGOSY_TRY_STATUS(text_.expect(':'));
    Token type = text_.token();
    ARGOSY_TRY(std::string dtype_name, text_.read_word("a dtype"));
    std::optional<DType> dtype = dtype_from_text(dtype_name);
    if (!dtype) return text_.error_at(type, format("unknown dtype {}", type.describe()));
    weight.dtype = *dtype;
    ARGOSY_TRY_STATUS(text_.expect('['));
    if (!text_.accept(']')) {
      do {
        ARGOSY_TRY(int64_t dim, text_.read_integer(0, INT64_MAX));
        weight.shape.push_back(dim);
      } while (text_.accept(','));
      ARGOSY_TRY_STATUS(text_.expect(']'));
    }
    Token kind_token = text_.token();
    ARGOSY_TRY(std::string kind_name, text_.read_word("the weight's kind"));
    std::optional<WeightKind> kind = weight_kind_from(kind_name);
    if (!kind) {
      return text_.error_at(kind_token, format("unknown kind of weight {}", kind_token.describe()),
                            "kinds are parameter, buffer, non_persistent_buffer and constant");
    }
    weight.kind = *kind;
    if (text_.accept('=')) {
      ARGOSY_TRY(weight.tied_to, graphs_.read_weight_name());
    }
    Result<TensorSourcePtr> source = shape_only(weight.dtype, weight.shape, weight.name);
    if (!source) return fail(text_.lexer().error_at(type.text, source.error().message, source.error().hint));
    weight.source = *std::move(source);
    return graphs_.add_weight(std::move(weight), at);
  }

  Status read_component() {
    Token at = text_.token();
    ARGOSY_TRY(std::string name, text_.read_word("the component's name"));
    for (const Component& component : program_.components) {
      if (component.name == name) return text_.error_at(at, format("component {} occurs twice", at.describe()));
    }
    start_component(std::move(name));
    ARGOSY_TRY_STATUS(text_.expect('{'));
    while (!text_.token().is('}')) {
      if (text_.accept("attribute")) {
        ARGOSY_TRY_STATUS(read_attribute(component_.attributes));
        continue;
      }
      ARGOSY_TRY(bool is_read, read_component_item());
      if (!is_read) {
        return text_.unexpected("attribute, symbol, dim_name, guard, specialized, input, output, graph or '}'");
      }
    }
    ARGOSY_TRY_STATUS(finish_component());
    ARGOSY_TRY_STATUS(text_.expect('}'));
    program_.components.push_back(std::move(component_));
    return {};
  }

  void start_component(std::string name) {
    component_ = Component();
    component_.name = std::move(name);
    component_.symbols = std::make_shared<SymContext>();
    text_.use(component_.symbols);
    declared_.clear();
    ranges_.clear();
    inputs_.clear();
    has_expressions_ = false;
    has_outputs_ = false;
  }

  // False: the token starts no line of a component.
  Result<bool> read_component_item() {
    Token at = text_.token();
    Status status;
    if (text_.accept("symbol")) {
      status = read_symbol(at);
    } else if (text_.accept("dim_name")) {
      status = read_dim_name();
    } else if (text_.accept("guard")) {
      status = read_guard();
    } else if (text_.accept("specialized")) {
      status = read_specialized();
    } else if (text_.accept("input")) {
      status = read_input();
    } else if (text_.accept("output")) {
      status = read_output();
    } else if (text_.accept("graph")) {
      status = read_graph();
    } else {
      return false;
    }
    if (!status) return fail(std::move(status).error());
    return true;
  }

  // symbol s0 positive in [1, 128] as "batch"
  Status read_symbol(const Token& line) {
    if (has_expressions_) return text_.error_at(line, "symbols must be declared before guards and graphs");
    Token at = text_.token();
    ARGOSY_TRY(std::string name, text_.read_word("the symbol's name"));
    if (name.empty()) return text_.error_at(at, "a name must not be empty");
    if (!declared_.insert(name).second) return text_.error_at(at, format("symbol {} occurs twice", at.describe()));
    SymAssumptions assumptions;
    for (;;) {
      if (text_.accept("any")) {
        assumptions.is_integer = false;
      } else if (text_.accept("real")) {
        assumptions.is_real = true;
      } else if (text_.accept("positive")) {
        assumptions.is_positive = true;
      } else if (text_.accept("nonnegative")) {
        assumptions.is_nonnegative = true;
      } else {
        break;
      }
    }
    SymExpr symbol = component_.symbols->symbol(name, assumptions);
    Result<SymExpr> readable = component_.symbols->parse_text(component_.symbols->to_text(symbol));
    if (!readable || *readable != symbol) {
      return text_.error_at(at, format("no symbol can have the name {}", quoted(name)));
    }
    SymRange range;
    if (text_.accept("in")) {
      Token range_token = text_.token();
      ARGOSY_TRY_STATUS(text_.expect('['));
      ARGOSY_TRY(range.min, read_bound("-inf", SymRange::kNoMin));
      ARGOSY_TRY_STATUS(text_.expect(','));
      ARGOSY_TRY(range.max, read_bound("inf", SymRange::kNoMax));
      ARGOSY_TRY_STATUS(text_.expect(']'));
      if (range.min > range.max || !component_.symbols->set_range(symbol, range)) {
        return text_.error_at(range_token, format("no value of symbol {} is in this range", at.describe()));
      }
    }
    ranges_.emplace_back(symbol, range);
    if (text_.accept("as")) {
      ARGOSY_TRY(component_.dim_names[name], text_.read_string());
    }
    return {};
  }

  Result<int64_t> read_bound(std::string_view infinite, int64_t none) {
    if (text_.token().text == infinite) {
      text_.lexer().advance();
      return none;
    }
    return text_.read_integer();
  }

  Status read_dim_name() {
    Token at = text_.token();
    ARGOSY_TRY(std::string symbol, text_.read_string());
    ARGOSY_TRY_STATUS(text_.expect('='));
    ARGOSY_TRY(std::string name, text_.read_string());
    if (!component_.dim_names.emplace(std::move(symbol), std::move(name)).second) {
      return text_.error_at(at, format("symbol {} has two names", at.describe()));
    }
    return {};
  }

  Status read_guard() {
    has_expressions_ = true;
    Guard guard;
    ARGOSY_TRY(guard.text, text_.read_string());
    if (text_.accept('(')) {
      ARGOSY_TRY(guard.condition, text_.read_expression());
      ARGOSY_TRY_STATUS(text_.expect(')'));
    }
    component_.guards.push_back(std::move(guard));
    return {};
  }

  Status read_specialized() {
    SpecializedDim dim;
    ARGOSY_TRY(dim.input, text_.read_string());
    ARGOSY_TRY_STATUS(text_.expect("dim"));
    ARGOSY_TRY(int64_t index, text_.read_integer(INT_MIN, INT_MAX));
    dim.dim = static_cast<int>(index);
    ARGOSY_TRY_STATUS(text_.expect('='));
    ARGOSY_TRY(dim.value, text_.read_integer());
    ARGOSY_TRY_STATUS(text_.expect("because"));
    ARGOSY_TRY(dim.reason, text_.read_string());
    component_.specialized.push_back(std::move(dim));
    return {};
  }

  // The values of inputs are looked up at the end, since the graph comes after.
  Status read_input() {
    InputSpec input;
    ARGOSY_TRY(input.name, text_.read_string());
    ARGOSY_TRY_STATUS(text_.expect('='));
    Token at = text_.token();
    std::string value;
    if (at.kind == TokenKind::kValueName) {
      ARGOSY_TRY(value, text_.read_name(TokenKind::kValueName, "a value"));
    } else {
      ARGOSY_TRY(input.constant, text_.read_argument(nullptr, {.kind = SchemaKind::kAny}));
    }
    component_.inputs.push_back(std::move(input));
    inputs_.push_back({at, std::move(value)});
    return {};
  }

  Status read_output() {
    has_outputs_ = true;
    Token at = text_.token();
    OutputSpec output;
    ARGOSY_TRY(std::string kind_name, text_.read_word("the output's kind"));
    std::optional<OutputKind> kind = output_kind_from(kind_name);
    if (!kind) {
      return text_.error_at(at, format("unknown kind of output {}", at.describe()),
                            "kinds are user, loss, buffer_mutation, parameter_mutation and input_mutation");
    }
    output.kind = *kind;
    if (text_.token().kind == TokenKind::kString) {
      ARGOSY_TRY(output.name, text_.read_string());
    }
    if (text_.accept("target")) {
      ARGOSY_TRY(output.target, text_.read_string());
    }
    component_.outputs.push_back(std::move(output));
    return {};
  }

  Status read_graph() {
    has_expressions_ = true;
    Token at = text_.token();
    if (at.kind == TokenKind::kNumber) {
      ARGOSY_TRY(uint32_t index, text_.read_index());
      if (index != component_.graphs.size()) {
        return text_.error_at(at, format("graph {} comes at the place of graph {}", index, component_.graphs.size()),
                              "number graphs from 0 in their order");
      }
    }
    ARGOSY_TRY(Graph graph, graphs_.read(*component_.symbols));
    component_.graphs.push_back(std::move(graph));
    return {};
  }

  Status finish_component() {
    if (component_.graphs.empty()) {
      return text_.unexpected(format("a graph in component {}", quoted(component_.name)));
    }
    for (const TextReader::GraphReference& reference : text_.graph_references()) {
      if (reference.graph.index >= component_.graphs.size()) {
        return text_.error_at(reference.token, format("there is no graph {}", reference.graph.index));
      }
    }
    text_.graph_references().clear();
    ARGOSY_TRY_STATUS(bind_inputs());
    if (!has_outputs_) component_.outputs = default_outputs(component_.entry());
    learn_equalities();
    return {};
  }

  // Sizes are equal where a guard says so, and where symbols have the same name for users. Ranges stay those of the
  // text, even if equalities would narrow them: the text is the whole truth.
  void learn_equalities() {
    SymContext& symbols = *component_.symbols;
    auto learn = [&](SymExpr condition) {
      if (condition.kind() == SymKind::kEq) symbols.unify(condition.operands()[0], condition.operands()[1]);
    };
    for (const Guard& guard : component_.guards) {
      if (!guard.condition.is_valid()) continue;
      learn(guard.condition);
      if (guard.condition.kind() != SymKind::kAnd) continue;
      for (SymExpr part : guard.condition.operands()) learn(part);
    }
    std::map<std::string_view, SymExpr> by_name;
    for (SymExpr symbol : symbols.symbols()) {
      auto named = component_.dim_names.find(std::string(symbol.symbol_name()));
      if (named == component_.dim_names.end()) continue;
      auto [first, is_new] = by_name.try_emplace(named->second, symbol);
      if (!is_new) symbols.unify(first->second, symbol);
    }
    for (const auto& [symbol, range] : ranges_) symbols.set_range(symbol, range);
  }

  Status bind_inputs() {
    const Graph& entry = component_.entry();
    if (inputs_.empty()) {
      component_.inputs = default_inputs(entry);
      return {};
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].value.empty()) continue;
      std::optional<ValueId> id = entry.find(inputs_[i].value);
      if (!id) {
        return text_.error_at(inputs_[i].at, format("the entry graph has no value {}", inputs_[i].at.describe()));
      }
      component_.inputs[i].value = *id;
    }
    return {};
  }

  struct PendingInput {
    Token at;
    std::string value;  // empty: a constant
  };

  TextReader text_;
  Program program_;
  GraphTextReader graphs_;
  bool has_implied_ = false;  // lines outside of any component were read

  // Of the component that is being read.
  Component component_;
  std::set<std::string> declared_;
  std::vector<std::pair<SymExpr, SymRange>> ranges_;
  std::vector<PendingInput> inputs_;
  bool has_expressions_ = false;
  bool has_outputs_ = false;
};

}  // namespace

Result<Program> parse(std::string_view text) { return ProgramReader(text).read(); }

}  // namespace argosy
