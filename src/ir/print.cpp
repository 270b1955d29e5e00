#include <set>

#include "base/text.h"
#include "ir/text.h"
#include "ir/text_syntax.h"

namespace argosy {
namespace {

// Signatures of few inputs and no weights stay on one line.
constexpr size_t kInputsPerLine = 3;

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string take() { return std::move(out_); }

  void print_program() {
    print_attributes(program_.attributes);
    print_schemas();
    for (const Weight& weight : program_.weights) print_weight(weight);
    // The only component of most programs needs no frame around it.
    bool is_framed = program_.components.size() != 1 || program_.components[0].name != "model" ||
                     !program_.components[0].attributes.empty();
    for (const Component& component : program_.components) {
      if (is_framed) {
        out_ += "component ";
        append_word(out_, component.name);
        out_ += " {\n";
        indent_ = 2;
      }
      print_component(component);
      if (is_framed) {
        indent_ = 0;
        out_ += "}\n";
      }
    }
  }

  void print_graph(const Component& component, const Graph& graph) {
    use(component);
    line("graph ");
    if (component.graphs.size() > 1) print_index(component, graph);
    bool is_short = graph.weights().empty() && graph.inputs().size() <= kInputsPerLine;
    print_signature(graph, graph.inputs(), is_short);
    if (!graph.weights().empty()) {
      out_ += " weights ";
      print_signature(graph, graph.weights(), false);
    }
    out_ += " {\n";
    indent_ += 2;
    for (NodeId node : graph.nodes()) print_node(graph, graph[node]);
    line("return");
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      out_ += i == 0 ? " " : ", ";
      append_argument(out_, &graph, graph.outputs()[i], {.kind = SchemaKind::kAny});
    }
    out_ += '\n';
    indent_ -= 2;
    line("}\n");
  }

 private:
  void line(std::string_view text) {
    out_.append(indent_, ' ');
    out_ += text;
  }

  void use(const Component& component) { symbols_ = component.symbols != nullptr ? component.symbols.get() : &none_; }

  void print_attributes(const std::map<std::string, std::string>& attributes) {
    for (const auto& [key, value] : attributes) {
      line("attribute ");
      append_word(out_, key);
      out_ += " = ";
      append_quoted(out_, value);
      out_ += '\n';
    }
  }

  // Only what nodes use and every program does not have anyway, by name.
  void print_schemas() {
    std::vector<bool> is_used(program_.schemas.size());
    for (const Component& component : program_.components) {
      for (const Graph& graph : component.graphs) {
        for (NodeId node : graph.nodes()) {
          if (graph[node].op.index < is_used.size()) is_used[graph[node].op.index] = true;
        }
      }
    }
    std::set<std::string_view> builtins(builtin_schemas().begin(), builtin_schemas().end());
    std::map<std::string_view, std::string_view> text_of;
    for (uint32_t i = 0; i < is_used.size(); ++i) {
      const OpSchema& schema = program_.schemas[OpId{i}];
      if (is_used[i] && !builtins.contains(schema.text)) text_of.emplace(schema.name, schema.text);
    }
    for (const auto& [name, text] : text_of) {
      out_ += "schema ";
      if (is_plain_schema(text)) {
        out_ += text;
      } else {
        append_quoted(out_, text);
      }
      out_ += '\n';
    }
  }

  // Whether the text survives as the rest of a line.
  static bool is_plain_schema(std::string_view text) {
    if (text.empty() || text.front() == ' ' || text.front() == '"' || text.back() == ' ') return false;
    for (char c : text) {
      auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte >= 0x7f || c == '#') return false;
    }
    return true;
  }

  void print_weight(const Weight& weight) {
    out_ += "weight @";
    append_sigil_name(weight.name);
    out_ += format(": {}[", to_text(weight.dtype));
    for (size_t i = 0; i < weight.shape.size(); ++i) {
      out_ += i == 0 ? "" : ", ";
      out_ += std::to_string(weight.shape[i]);
    }
    out_ += format("] {}", name_of(weight.kind));
    if (weight.tied_to.is_valid()) {
      out_ += " = ";
      print_weight_name(weight.tied_to);
    }
    out_ += '\n';
  }

  void print_component(const Component& component) {
    use(component);
    print_attributes(component.attributes);
    print_symbols(component);
    for (const Guard& guard : component.guards) {
      line("guard ");
      append_quoted(out_, guard.text);
      if (guard.condition.is_valid()) {
        out_ += " (";
        append_expression(out_, *symbols_, guard.condition);
        out_ += ')';
      }
      out_ += '\n';
    }
    for (const SpecializedDim& dim : component.specialized) {
      line("specialized ");
      append_quoted(out_, dim.input);
      out_ += format(" dim {} = {} because ", dim.dim, dim.value);
      append_quoted(out_, dim.reason);
      out_ += '\n';
    }
    if (component.graphs.empty()) return;
    print_interface(component);
    for (const Graph& graph : component.graphs) print_graph(component, graph);
  }

  void print_symbols(const Component& component) {
    std::map<std::string, std::string> names = component.dim_names;
    for (SymExpr symbol : symbols_->symbols()) {
      SymAssumptions assumptions = symbols_->assumptions(symbol);
      line("symbol ");
      append_word(out_, symbol.symbol_name());
      if (!assumptions.is_integer) out_ += " any";
      if (assumptions.is_real) out_ += " real";
      if (assumptions.is_positive) out_ += " positive";
      if (assumptions.is_nonnegative) out_ += " nonnegative";
      if (auto range = stated_range(*symbols_, symbol)) {
        out_ += format(" in [{}, {}]", range->min == SymRange::kNoMin ? "-inf" : std::to_string(range->min),
                       range->max == SymRange::kNoMax ? "inf" : std::to_string(range->max));
      }
      auto named = names.find(std::string(symbol.symbol_name()));
      if (named != names.end()) {
        out_ += " as ";
        append_quoted(out_, named->second);
        names.erase(named);
      }
      out_ += '\n';
    }
    for (const auto& [symbol, name] : names) {
      line("dim_name ");
      append_quoted(out_, symbol);
      out_ += " = ";
      append_quoted(out_, name);
      out_ += '\n';
    }
  }

  // Inputs and outputs, unless they are what the parser makes up anyway.
  void print_interface(const Component& component) {
    const Graph& entry = component.entry();
    if (component.inputs != default_inputs(entry)) {
      for (const InputSpec& input : component.inputs) {
        line("input ");
        append_quoted(out_, input.name);
        out_ += " = ";
        append_argument(out_, &entry, input.value.is_valid() ? Argument(input.value) : input.constant,
                        {.kind = SchemaKind::kAny});
        out_ += '\n';
      }
    }
    if (component.outputs != default_outputs(entry)) {
      for (const OutputSpec& output : component.outputs) {
        line("output ");
        out_ += name_of(output.kind);
        if (!output.name.empty()) {
          out_ += ' ';
          append_quoted(out_, output.name);
        }
        if (!output.target.empty()) {
          out_ += " target ";
          append_quoted(out_, output.target);
        }
        out_ += '\n';
      }
    }
  }

  void print_index(const Component& component, const Graph& graph) {
    for (size_t i = 0; i < component.graphs.size(); ++i) {
      if (&component.graphs[i] == &graph) out_ += format("{} ", i);
    }
  }

  void print_signature(const Graph& graph, std::span<const ValueId> values, bool is_short) {
    out_ += '(';
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_short) {
        out_ += i == 0 ? "" : ", ";
      } else {
        out_ += i == 0 ? "\n" : ",\n";
        out_.append(indent_ + 4, ' ');
      }
      print_definition(graph, values[i]);
    }
    out_ += ')';
  }

  void print_definition(const Graph& graph, ValueId id) {
    const Value& value = graph[id];
    append_argument(out_, &graph, Argument(id), {.kind = SchemaKind::kAny});
    if (!value.weight.is_valid() || !is_type_of_weight(value)) {
      out_ += ": ";
      append_type(out_, *symbols_, value.type);
    }
    if (value.storage.is_valid()) out_ += format(" storage {}", value.storage.index);
    if (value.weight.is_valid()) {
      out_ += " = ";
      print_weight_name(value.weight);
    }
  }

  bool is_type_of_weight(const Value& value) const {
    const TensorType* tensor = value.tensor();
    if (tensor == nullptr || value.weight.index >= program_.weights.size()) return false;
    const Weight& weight = program_[value.weight];
    if (tensor->dtype != weight.dtype || !tensor->strides.empty() || tensor->shape.size() != weight.shape.size()) {
      return false;
    }
    for (size_t i = 0; i < weight.shape.size(); ++i) {
      if (!tensor->shape[i].is_valid() || tensor->shape[i].as_integer() != weight.shape[i]) return false;
    }
    return true;
  }

  void print_node(const Graph& graph, const Node& node) {
    line("");
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      out_ += i == 0 ? "" : ", ";
      print_definition(graph, node.outputs[i]);
    }
    if (!node.outputs.empty()) out_ += " = ";
    if (node.op.index >= program_.schemas.size()) {
      out_ += format("<op {}>", node.op.index);
    } else {
      print_call(graph, node, program_.schemas[node.op]);
    }
    if (node.location.index < program_.locations.size()) print_location(program_.locations[node.location]);
    out_ += '\n';
  }

  void print_call(const Graph& graph, const Node& node, const OpSchema& schema) {
    if (schema.name == "return" || schema.name == "loc") {  // words of the text's own
      append_quoted(out_, schema.name);
    } else {
      append_word(out_, schema.name);
    }
    out_ += '(';
    // What comes after named arguments belongs to "...", so nothing may be left out before it.
    bool has_more = node.arguments.size() > schema.arguments.size();
    bool is_first = true;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      bool is_named = i < schema.arguments.size();
      if (is_named && !has_more && schema.arguments[i].default_value == node.arguments[i]) continue;
      if (!is_first) out_ += ", ";
      is_first = false;
      if (is_named) {
        append_word(out_, schema.arguments[i].name);
        out_ += '=';
      }
      append_argument(out_, &graph, node.arguments[i],
                      is_named ? schema.arguments[i].type : SchemaType{.kind = SchemaKind::kAny});
    }
    out_ += ')';
  }

  void print_location(const ModelLocation& location) {
    if (location == ModelLocation{}) return;
    out_ += " loc(";
    append_quoted(out_, location.module_path);
    if (!location.class_name.empty()) {
      out_ += ", ";
      append_quoted(out_, location.class_name);
    }
    if (location.call_index != 0) out_ += format(", call {}", location.call_index);
    if (!location.file.empty() || location.line != 0) {
      out_ += ", ";
      append_quoted(out_, location.file);
      out_ += format(":{}", location.line);
    }
    out_ += ')';
  }

  void print_weight_name(WeightId id) {
    out_ += '@';
    if (id.index < program_.weights.size()) {
      append_sigil_name(program_[id].name);
    } else {
      out_ += format("<{}>", id.index);
    }
  }

  void append_sigil_name(std::string_view name) {
    if (is_bare_name(name)) {
      out_ += name;
    } else {
      append_quoted(out_, name);
    }
  }

  const Program& program_;
  std::string out_;
  size_t indent_ = 0;
  SymContext none_;  // for a component without symbols, which only a broken program has
  const SymContext* symbols_ = &none_;
};

}  // namespace

std::string print(const Program& program) {
  Printer printer(program);
  printer.print_program();
  return printer.take();
}

std::string print(const Program& program, const Component& component, const Graph& graph) {
  Printer printer(program);
  printer.print_graph(component, graph);
  return printer.take();
}

}  // namespace argosy
