#include <map>
#include <unordered_map>

#include "base/text.h"
#include "ir/text.h"
#include "ir/text_syntax.h"

namespace argosy {
namespace {

using Difference = std::optional<std::string>;

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return quoted(value);
  } else {
    return format("{}", value);
  }
}

template <class T>
Difference compare(std::string_view what, const T& a, const T& b) {
  if (a == b) return std::nullopt;
  return format("{} is {} in one and {} in the other", what, shown(a), shown(b));
}

Difference compare_texts(std::string_view what, const std::map<std::string, std::string>& a,
                         const std::map<std::string, std::string>& b) {
  for (const auto& [key, value] : a) {
    auto other = b.find(key);
    if (other == b.end()) return format("{} {} is missing in the other", what, quoted(key));
    if (auto d = compare(format("{} {}", what, quoted(key)), value, other->second)) return d;
  }
  for (const auto& [key, value] : b) {
    if (!a.contains(key)) return format("{} {} is only in the other", what, quoted(key));
  }
  return std::nullopt;
}

/// Compares one component of each program. Values correspond by where they are defined, storages by the first values
/// that have them.
class ComponentComparison {
 public:
  ComponentComparison(const Program& a, const Program& b, const Component& in_a, const Component& in_b)
      : program_a_(a), program_b_(b), a_(in_a), b_(in_b) {}

  Difference compare_all() {
    if ((a_.symbols == nullptr) != (b_.symbols == nullptr)) return "one has no symbols";
    if (auto d = compare_texts("attribute", a_.attributes, b_.attributes)) return d;
    if (auto d = compare_symbols()) return d;
    if (auto d = compare_facts()) return d;
    if (auto d = compare("number of graphs", a_.graphs.size(), b_.graphs.size())) return d;
    for (size_t i = 0; i < a_.graphs.size(); ++i) {
      if (auto d = compare_graphs(a_.graphs[i], b_.graphs[i])) {
        return a_.graphs.size() == 1 ? d : format("graph {}: {}", i, *d);
      }
      if (i == 0) {
        if (auto d = compare_interface()) return d;
      }
    }
    return std::nullopt;
  }

 private:
  // Symbols that only one side has do not count: where they are used, expressions differ.
  Difference compare_symbols() {
    if (auto d = compare_texts("name of symbol", a_.dim_names, b_.dim_names)) return d;
    if (a_.symbols == b_.symbols) return std::nullopt;
    std::unordered_map<std::string_view, SymExpr> in_b;
    for (SymExpr symbol : b_.symbols->symbols()) in_b.emplace(symbol.symbol_name(), symbol);
    for (SymExpr symbol : a_.symbols->symbols()) {
      auto other = in_b.find(symbol.symbol_name());
      if (other == in_b.end()) continue;
      std::string what(symbol.symbol_name());
      if (a_.symbols->assumptions(symbol) != b_.symbols->assumptions(other->second)) {
        return format("assumptions about symbol {} differ", what);
      }
      SymRange range_a = a_.symbols->range(symbol);
      SymRange range_b = b_.symbols->range(other->second);
      if (auto d = compare("minimum of symbol " + what, range_a.min, range_b.min)) return d;
      if (auto d = compare("maximum of symbol " + what, range_a.max, range_b.max)) return d;
    }
    return std::nullopt;
  }

  Difference compare_facts() {
    if (auto d = compare("number of guards", a_.guards.size(), b_.guards.size())) return d;
    for (size_t i = 0; i < a_.guards.size(); ++i) {
      if (auto d = compare(format("guard {}", i), a_.guards[i].text, b_.guards[i].text)) return d;
      if (!is_same(a_.guards[i].condition, b_.guards[i].condition)) {
        return format("condition of guard {} is {} in one and {} in the other", quoted(a_.guards[i].text),
                      expression_text(a_, a_.guards[i].condition), expression_text(b_, b_.guards[i].condition));
      }
    }
    if (a_.specialized != b_.specialized) return "the dims that the trace fixed differ";
    return std::nullopt;
  }

  Difference compare_interface() {
    if (auto d = compare("number of inputs that callers pass", a_.inputs.size(), b_.inputs.size())) return d;
    for (size_t i = 0; i < a_.inputs.size(); ++i) {
      const InputSpec& input_a = a_.inputs[i];
      const InputSpec& input_b = b_.inputs[i];
      if (auto d = compare(format("name of input {}", i), input_a.name, input_b.name)) return d;
      if (!is_same_value(input_a.value, input_b.value) || input_a.constant != input_b.constant) {
        return format("input {} stands for {} in one and {} in the other", quoted(input_a.name),
                      input_text(a_, input_a), input_text(b_, input_b));
      }
    }
    if (auto d = compare("number of outputs that callers get", a_.outputs.size(), b_.outputs.size())) return d;
    for (size_t i = 0; i < a_.outputs.size(); ++i) {
      if (auto d = compare(format("kind of output {}", i), name_of(a_.outputs[i].kind), name_of(b_.outputs[i].kind)))
        return d;
      if (auto d = compare(format("name of output {}", i), a_.outputs[i].name, b_.outputs[i].name)) return d;
      if (auto d = compare(format("target of output {}", i), a_.outputs[i].target, b_.outputs[i].target)) return d;
    }
    return std::nullopt;
  }

  Difference compare_graphs(const Graph& a, const Graph& b) {
    graph_a_ = &a;
    graph_b_ = &b;
    in_b_.assign(a.value_limit(), ValueId{});
    if (auto d = compare_definitions("inputs", a.inputs(), b.inputs())) return d;
    if (auto d = compare_definitions("weights", a.weights(), b.weights())) return d;
    NodeId node_a = a.first();
    NodeId node_b = b.first();
    for (; node_a.is_valid() && node_b.is_valid(); node_a = a.next(node_a), node_b = b.next(node_b)) {
      if (auto d = compare_nodes(a[node_a], b[node_b])) return format("{}: {}", describe(program_a_, a, node_a), *d);
    }
    if (node_a.is_valid()) return format("{} is missing in the other", describe(program_a_, a, node_a));
    if (node_b.is_valid()) return format("{} is only in the other", describe(program_b_, b, node_b));
    if (auto d = compare("number of results", a.outputs().size(), b.outputs().size())) return d;
    for (size_t i = 0; i < a.outputs().size(); ++i) {
      SchemaType any{.kind = SchemaKind::kAny};
      if (auto d = compare_arguments(format("result {}", i), a.outputs()[i], b.outputs()[i], any)) return d;
    }
    return std::nullopt;
  }

  Difference compare_definitions(std::string_view what, std::span<const ValueId> a, std::span<const ValueId> b) {
    if (auto d = compare(format("number of {}", what), a.size(), b.size())) return d;
    for (size_t i = 0; i < a.size(); ++i) {
      const Value& value_a = (*graph_a_)[a[i]];
      const Value& value_b = (*graph_b_)[b[i]];
      in_b_[a[i].index] = b[i];
      if (auto d = compare_values(value_a, value_b)) return format("%{}: {}", value_a.name, *d);
    }
    return std::nullopt;
  }

  Difference compare_values(const Value& a, const Value& b) {
    if (!is_same_type(a.type, b.type)) {
      std::string text_a, text_b;
      append_type(text_a, *a_.symbols, a.type);
      append_type(text_b, *b_.symbols, b.type);
      return format("type is {} in one and {} in the other", text_a, text_b);
    }
    if (!is_same_storage(a.storage, b.storage)) return "it shares memory with other values than in the other";
    if (auto d = compare("weight", weight_name(program_a_, a.weight), weight_name(program_b_, b.weight))) return d;
    return std::nullopt;
  }

  Difference compare_nodes(const Node& a, const Node& b) {
    const OpSchema& schema = program_a_.schemas[a.op];
    const OpSchema& schema_b = program_b_.schemas[b.op];
    if (auto d = compare("op", schema.name, schema_b.name)) return d;
    if (auto d = compare("schema of the op", schema.text, schema_b.text)) return d;
    if (auto d = compare("number of arguments", a.arguments.size(), b.arguments.size())) return d;
    for (size_t i = 0; i < a.arguments.size(); ++i) {
      bool is_named = i < schema.arguments.size();
      std::string name = is_named ? "argument " + schema.arguments[i].name : format("argument {}", i);
      SchemaType type = is_named ? schema.arguments[i].type : SchemaType{.kind = SchemaKind::kAny};
      if (auto d = compare_arguments(name, a.arguments[i], b.arguments[i], type)) return d;
    }
    ModelLocation none;
    const ModelLocation& where_a = a.location.is_valid() ? program_a_.locations[a.location] : none;
    const ModelLocation& where_b = b.location.is_valid() ? program_b_.locations[b.location] : none;
    if (where_a != where_b) {
      return format("it comes from {} in one and {} in the other", quoted(to_text(where_a)), quoted(to_text(where_b)));
    }
    return compare_definitions("results", a.outputs, b.outputs);
  }

  Difference compare_arguments(std::string_view what, const Argument& a, const Argument& b, const SchemaType& type) {
    Argument translated = a;
    bool is_known = true;
    for_each_value(translated, [&](ValueId& id, uint32_t) {
      is_known = is_known && id.index < in_b_.size() && in_b_[id.index].is_valid();
      if (is_known) id = in_b_[id.index];
    });
    if (is_known && translated == b) return std::nullopt;
    std::string text_a, text_b;
    append_argument(text_a, graph_a_, a, type);
    append_argument(text_b, graph_b_, b, type);
    return format("{} is {} in one and {} in the other", what, text_a, text_b);
  }

  bool is_same(SymExpr a, SymExpr b) const {
    if (a.is_valid() != b.is_valid()) return false;
    if (!a.is_valid() || a == b) return true;
    if (auto integer = a.as_integer()) return b.as_integer() == integer;
    return a.kind() == b.kind() && a_.symbols->to_text(a) == b_.symbols->to_text(b);
  }

  bool is_same(const std::vector<SymExpr>& a, const std::vector<SymExpr>& b) const {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!is_same(a[i], b[i])) return false;
    }
    return true;
  }

  bool is_same_type(const ValueType& a, const ValueType& b) const {
    if (a.index() != b.index()) return false;
    if (auto* tensor = std::get_if<TensorType>(&a)) {
      const auto& other = std::get<TensorType>(b);
      return tensor->dtype == other.dtype && is_same(tensor->shape, other.shape) &&
             is_same(tensor->strides, other.strides);
    }
    const auto& number = std::get<SymType>(a);
    const auto& other = std::get<SymType>(b);
    return number.kind == other.kind && is_same(number.expression, other.expression);
  }

  // Ids may differ, but the same values must share: the ids of both sides map to each other one to one.
  bool is_same_storage(StorageId a, StorageId b) {
    if (!a.is_valid() || !b.is_valid()) return a.is_valid() == b.is_valid();
    return storage_in_b_.try_emplace(a, b).first->second == b && storage_in_a_.try_emplace(b, a).first->second == a;
  }

  bool is_same_value(ValueId a, ValueId b) const {
    if (!a.is_valid() || !b.is_valid()) return a.is_valid() == b.is_valid();
    return a.index < in_b_.size() && in_b_[a.index] == b;
  }

  static std::string weight_name(const Program& program, WeightId id) {
    return id.is_valid() ? program[id].name : std::string();
  }

  static std::string expression_text(const Component& component, SymExpr expression) {
    std::string text;
    append_expression(text, *component.symbols, expression);
    return text;
  }

  static std::string input_text(const Component& component, const InputSpec& input) {
    std::string text;
    append_argument(text, &component.entry(), input.value.is_valid() ? Argument(input.value) : input.constant,
                    {.kind = SchemaKind::kAny});
    return text;
  }

  const Program& program_a_;
  const Program& program_b_;
  const Component& a_;
  const Component& b_;
  const Graph* graph_a_ = nullptr;
  const Graph* graph_b_ = nullptr;
  std::vector<ValueId> in_b_;  // of the current graphs, by index of the value in a
  std::unordered_map<StorageId, StorageId> storage_in_b_, storage_in_a_;
};

Difference compare_weights(const Program& a, const Program& b) {
  if (auto d = compare("number of weights", a.weights.size(), b.weights.size())) return d;
  std::unordered_map<std::string_view, const Weight*> in_b;
  for (const Weight& weight : b.weights) in_b.emplace(weight.name, &weight);
  for (const Weight& weight : a.weights) {
    auto found = in_b.find(weight.name);
    std::string what = "weight " + quoted(weight.name);
    if (found == in_b.end()) return what + " is missing in the other";
    const Weight& other = *found->second;
    if (auto d = compare("kind of " + what, name_of(weight.kind), name_of(other.kind))) return d;
    if (auto d = compare("dtype of " + what, to_text(weight.dtype), to_text(other.dtype))) return d;
    if (weight.shape != other.shape) return format("shape of {} differs", what);
    std::string tied_a = weight.tied_to.is_valid() ? a[weight.tied_to].name : "";
    std::string tied_b = other.tied_to.is_valid() ? b[other.tied_to].name : "";
    if (auto d = compare("what is tied to " + what, tied_a, tied_b)) return d;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference(const Program& a, const Program& b) {
  if (auto d = compare_texts("attribute", a.attributes, b.attributes)) return d;
  if (auto d = compare_weights(a, b)) return d;
  if (auto d = compare("number of components", a.components.size(), b.components.size())) return d;
  for (size_t i = 0; i < a.components.size(); ++i) {
    if (auto d = compare(format("name of component {}", i), a.components[i].name, b.components[i].name)) return d;
    if (auto d = ComponentComparison(a, b, a.components[i], b.components[i]).compare_all()) {
      return format("component {}: {}", a.components[i].name, *d);
    }
  }
  return std::nullopt;
}

}  // namespace argosy
