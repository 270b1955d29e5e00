#include "ir/parse_graph.h"

#include <climits>
#include <unordered_set>

#include "base/text.h"

namespace argosy {
namespace {

// What a filled-in default costs of the budget.
size_t cost_of(const Argument& argument) {
  if (auto* list = argument.get_if<IntList>()) return 1 + list->size();
  if (auto* list = argument.get_if<DoubleList>()) return 1 + list->size();
  if (auto* list = argument.get_if<BoolList>()) return 1 + list->size();
  if (auto* text = argument.get_if<std::string>()) return 1 + text->size() / 16;
  size_t cost = 1;
  if (auto* list = argument.get_if<StringList>()) {
    for (const std::string& item : *list) cost += 2 + item.size() / 16;
  } else if (auto* nested = argument.get_if<ArgumentList>()) {
    for (const Argument& item : nested->items) cost += 2 + cost_of(item);
  }
  return cost;
}

}  // namespace

Status GraphTextReader::add_weight(Weight weight, const Token& at) {
  WeightId id{static_cast<uint32_t>(program_.weights.size())};
  if (!weights_.emplace(weight.name, id).second) {
    return text_.error_at(at, format("weight {} occurs twice", at.describe()));
  }
  program_.weights.push_back(std::move(weight));
  return {};
}

Result<WeightId> GraphTextReader::read_weight_name() {
  Token at = text_.token();
  ARGOSY_TRY(std::string name, text_.read_name(TokenKind::kWeightName, "a weight"));
  auto found = weights_.find(name);
  if (found == weights_.end()) {
    return text_.error_at(at, format("weight {} is not defined", at.describe()),
                          "a line \"weight @name: f32[2] parameter\" has to come before");
  }
  return found->second;
}

Result<Graph> GraphTextReader::read(SymContext& symbols) {
  Graph graph;
  Rewriter rewriter(graph);
  ARGOSY_TRY_STATUS(read_inputs(rewriter));
  if (text_.accept("weights")) ARGOSY_TRY_STATUS(read_weights(rewriter, symbols));
  ARGOSY_TRY_STATUS(text_.expect('{'));
  while (!text_.token().is("return")) {
    if (text_.token().is('}')) return text_.unexpected("'return' at the end of the graph");
    ARGOSY_TRY_STATUS(read_node(rewriter));
  }
  ARGOSY_TRY_STATUS(read_return(rewriter));
  ARGOSY_TRY_STATUS(text_.expect('}'));
  return graph;
}

Result<GraphTextReader::Definition> GraphTextReader::read_definition(const Graph& graph) {
  Token at = text_.token();
  Definition definition;
  ARGOSY_TRY(definition.value.name, text_.read_name(TokenKind::kValueName, "a value"));
  if (graph.find(definition.value.name)) {
    return text_.error_at(at, format("value {} is defined twice", at.describe()));
  }
  definition.has_type = text_.accept(':');
  if (definition.has_type) {
    ARGOSY_TRY(definition.value.type, text_.read_type());
  }
  if (text_.accept("storage")) {
    ARGOSY_TRY(definition.value.storage.index, text_.read_index());
  }
  return definition;
}

Status GraphTextReader::read_inputs(Rewriter& rewriter) {
  ARGOSY_TRY_STATUS(text_.expect('('));
  if (text_.accept(')')) return {};
  do {
    ARGOSY_TRY(Definition input, read_definition(rewriter.graph()));
    if (!input.has_type) return text_.unexpected("':' and the type of the input");
    rewriter.add_input(std::move(input.value));
  } while (text_.accept(','));
  return text_.expect(')');
}

Status GraphTextReader::read_weights(Rewriter& rewriter, SymContext& symbols) {
  ARGOSY_TRY_STATUS(text_.expect('('));
  if (text_.accept(')')) return {};
  do {
    ARGOSY_TRY(Definition value, read_definition(rewriter.graph()));
    ARGOSY_TRY_STATUS(text_.expect('='));
    ARGOSY_TRY(WeightId id, read_weight_name());
    if (!value.has_type) {
      TensorType type{.dtype = program_[id].dtype, .shape = {}, .strides = {}};
      for (int64_t dim : program_[id].shape) type.shape.push_back(symbols.integer(dim));
      value.value.type = std::move(type);
    }
    rewriter.add_weight(std::move(value.value), id);
  } while (text_.accept(','));
  return text_.expect(')');
}

Status GraphTextReader::read_node(Rewriter& rewriter) {
  std::vector<NewValue> outputs;
  if (text_.token().kind == TokenKind::kValueName) {
    std::unordered_set<std::string> names;
    do {
      Token at = text_.token();
      ARGOSY_TRY(Definition output, read_definition(rewriter.graph()));
      if (!output.has_type) return text_.unexpected("':' and the type of the output");
      if (!names.insert(output.value.name).second) {
        return text_.error_at(at, format("value {} is defined twice", at.describe()));
      }
      outputs.push_back(std::move(output.value));
    } while (text_.accept(','));
    ARGOSY_TRY_STATUS(text_.expect('='));
  }
  Token at = text_.token();
  ARGOSY_TRY(OpId op, read_op());
  ARGOSY_TRY(std::vector<Argument> arguments, read_arguments(rewriter.graph(), program_.schemas[op], at));
  LocationId location;
  if (text_.accept("loc")) {
    ARGOSY_TRY(location, read_location());
  }
  rewriter.create(op, std::move(arguments), std::move(outputs), location);
  return {};
}

Result<OpId> GraphTextReader::read_op() {
  Token at = text_.token();
  ARGOSY_TRY(std::string name, text_.read_word("an op"));
  if (!text_.token().is('(')) return text_.unexpected("'(' and the arguments of the op");
  if (auto op = program_.schemas.find(name)) return *op;
  if (auto op = program_.schemas.find(name + ".default")) return *op;
  return fail(text_.lexer().error_at(at.text, ErrorCode::kUnsupportedOp, format("op {} has no schema", quoted(name)),
                                     "add its schema before: schema aten::relu(Tensor self) -> Tensor"));
}

Result<std::vector<Argument>> GraphTextReader::read_arguments(const Graph& graph, const OpSchema& schema,
                                                              const Token& op) {
  ARGOSY_TRY_STATUS(text_.expect('('));
  std::vector<std::optional<Argument>> given(schema.arguments.size());
  std::vector<Argument> more;
  size_t next = 0;  // where an argument without a name goes, and where a named one most likely does
  bool is_named_before = false;
  if (!text_.accept(')')) {
    do {
      Token at = text_.token();
      size_t index = is_named_before ? given.size() : next;
      if (at.kind == TokenKind::kWord || at.kind == TokenKind::kString) {
        ARGOSY_TRY(std::string name, text_.read_word("an argument"));
        if (text_.accept('=')) {
          is_named_before = true;
          index = next < given.size() && schema.arguments[next].name == name
                      ? next
                      : schema.find_argument(name).value_or(UINT32_MAX);
          if (index == UINT32_MAX) {
            return text_.error_at(at, format("op {} has no argument {}", schema.name, quoted(name)),
                                  "its schema is " + schema.text);
          }
          if (given[index]) return text_.error_at(at, format("argument {} is given twice", quoted(name)));
        } else {
          text_.lexer().rewind(at);
        }
      }
      bool is_more = index >= given.size();
      if (is_more && !schema.is_variadic) {
        return text_.error_at(at, format("too many arguments: op {} takes {}", schema.name, given.size()),
                              "its schema is " + schema.text);
      }
      SchemaType any{.kind = SchemaKind::kAny};
      ARGOSY_TRY(Argument argument, text_.read_argument(&graph, is_more ? any : schema.arguments[index].type));
      if (is_more) {
        more.push_back(std::move(argument));
      } else {
        given[index] = std::move(argument);
      }
      next = index + 1;
    } while (text_.accept(','));
    ARGOSY_TRY_STATUS(text_.expect(')'));
  }
  ARGOSY_TRY_STATUS(fill_defaults(schema, given, op));
  std::vector<Argument> arguments;
  arguments.reserve(given.size() + more.size());
  for (std::optional<Argument>& argument : given) arguments.push_back(*std::move(argument));
  for (Argument& argument : more) arguments.push_back(std::move(argument));
  return arguments;
}

Status GraphTextReader::fill_defaults(const OpSchema& schema, std::vector<std::optional<Argument>>& given,
                                      const Token& op) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    const SchemaArgument& argument = schema.arguments[i];
    if (!argument.default_value) {
      return text_.error_at(op, format("op {} lacks its argument {}", schema.name, quoted(argument.name)),
                            "its schema is " + schema.text);
    }
    size_t cost = cost_of(*argument.default_value);
    if (cost > default_budget_) {
      return text_.error_at(op, "the defaults that are left out are far larger than the text", "write them out");
    }
    default_budget_ -= cost;
    given[i] = argument.default_value;
  }
  return {};
}

// loc("module.path", "Class", call 1, "file.py":88), all but the first optional.
Result<LocationId> GraphTextReader::read_location() {
  ModelLocation location;
  ARGOSY_TRY_STATUS(text_.expect('('));
  ARGOSY_TRY(location.module_path, text_.read_string());
  bool has_class = false;
  bool has_call = false;
  while (text_.accept(',')) {
    if (!has_call && text_.accept("call")) {
      ARGOSY_TRY(int64_t index, text_.read_integer(INT_MIN, INT_MAX));
      location.call_index = static_cast<int>(index);
      has_call = true;
      continue;
    }
    ARGOSY_TRY(std::string name, text_.read_string());
    if (text_.accept(':')) {
      location.file = std::move(name);
      ARGOSY_TRY(int64_t line, text_.read_integer(INT_MIN, INT_MAX));
      location.line = static_cast<int>(line);
      break;
    }
    if (has_class || has_call) return text_.unexpected("':' and a line number");
    location.class_name = std::move(name);
    has_class = true;
  }
  ARGOSY_TRY_STATUS(text_.expect(')'));
  return program_.locations.intern(std::move(location));
}

Status GraphTextReader::read_return(Rewriter& rewriter) {
  ARGOSY_TRY_STATUS(text_.expect("return"));
  std::vector<Argument> outputs;
  if (!text_.token().is('}')) {
    do {
      ARGOSY_TRY(Argument output, text_.read_argument(&rewriter.graph(), {.kind = SchemaKind::kAny}));
      outputs.push_back(std::move(output));
    } while (text_.accept(','));
  }
  rewriter.set_outputs(std::move(outputs));
  return {};
}

}  // namespace argosy
