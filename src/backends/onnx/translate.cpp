#include <algorithm>
#include <set>

#include "backends/onnx/lowering.h"
#include "backends/onnx/own_nodes.h"
#include "backends/onnx/translator.h"
#include "base/check.h"
#include "base/text.h"
#include "border/edit.h"

namespace argosy::onnx {
namespace {

DType element_type(SymType::Kind kind) {
  switch (kind) {
    case SymType::Kind::kBool: return DType::kBool;
    case SymType::Kind::kFloat: return DType::kF64;
    default: return DType::kI64;
  }
}

/// Whether a node only computes with sizes: such nodes are translated when their result is asked for.
bool is_size_arithmetic(const Program& program, const argosy::Graph& graph, const argosy::Node& node) {
  for (ValueId output : node.outputs) {
    if (graph[output].tensor() != nullptr) return false;
  }
  std::string_view op = program.schemas[node.op].name;
  return !node.outputs.empty() &&
         (op.starts_with("_operator.") || op.starts_with("torch.") || op.starts_with("math.") ||
          op.starts_with("aten.sym_") || op.starts_with("builtins."));
}

/// Whether bf16 is a type of the model itself, and not only of a few nodes that round to it on the way.
bool has_bf16(const Program& program, const Component& component) {
  auto is_bf16 = [](const TensorType* type) { return type != nullptr && type->dtype == DType::kBF16; };
  return std::ranges::any_of(program.weights, [](const Weight& weight) { return weight.dtype == DType::kBF16; }) ||
         std::ranges::any_of(component.inputs, [&](const InputSpec& input) {
           return input.value.is_valid() && is_bf16(component.entry()[input.value].tensor());
         });
}

}  // namespace

Translator::Translator(const Program& program, const Component& component, const LoweringOptions& options,
                       const Translations& translations, Diagnostics& diagnostics)
    : program_(program),
      component_(component),
      options_(options),
      translations_(translations),
      diagnostics_(diagnostics),
      builder_(options.opset),
      sizes_(builder_, *component.symbols),
      graph_(&component.entry()),
      values_(graph_->value_limit()) {
  if (has_bf16(program, component)) builder_.keep_bf16();
}

std::string Translator::dim_name(SymExpr size) const {
  if (!size.is_valid()) return "";
  SymContext& symbols = *component_.symbols;
  SymExpr named = symbols.substitute(size, [&](SymExpr symbol) -> std::optional<SymExpr> {
    auto found = component_.dim_names.find(std::string(symbol.symbol_name()));
    if (found == component_.dim_names.end()) return std::nullopt;
    return symbols.symbol(found->second, symbols.assumptions(symbol));
  });
  return symbols.to_text(named);
}

std::vector<Dim> Translator::dims_of(const TensorType& type) const {
  std::vector<Dim> dims;
  for (SymExpr size : type.shape) {
    auto number = size.is_valid() ? size.as_integer() : std::nullopt;
    dims.push_back(number ? Dim(*number) : Dim(dim_name(size)));
  }
  return dims;
}

void Translator::add_inputs() {
  for (const InputSpec& input : component_.inputs) {
    if (!input.value.is_valid()) continue;  // fixed by the trace
    const argosy::Value& value = (*graph_)[input.value];
    onnx::Value made{input.name.empty() ? value.name : input.name, std::nullopt, std::vector<Dim>{}};
    if (const TensorType* type = value.tensor()) {
      made.dtype = type->dtype;
      made.shape = dims_of(*type);
    } else {
      made.dtype = element_type(value.number()->kind);
    }
    auto any_rank = component_.attributes.find(std::string(kAnyRank));
    bool is_grouped = any_rank != component_.attributes.end() && any_rank->second == input.name;
    if (is_grouped) made.shape.reset();
    Ref ref = builder_.add_value(std::move(made));
    builder_.root().inputs.push_back(ref);
    if (is_grouped) {
      int64_t width = value.tensor()->shape.back().as_integer().value();
      ref = builder_.node("Reshape", {ref, builder_.ints({-1, width})});
    }
    if (const TensorType* type = value.tensor()) {
      set(input.value, ref);
      sizes_.add_root(ref, type->shape);
    } else {
      set(input.value, builder_.node("Reshape", {ref, builder_.ints({1})}));
    }
  }
}

void Translator::set(ValueId value, Ref ref) {
  values_[value.index] = ref;
  const argosy::Value& source = (*graph_)[value];
  if (const SymType* number = source.number()) {
    if (number->expression.is_valid()) sizes_.define(number->expression, ref);
    return;
  }
  onnx::Value& made = builder_[ref];
  if (made.name.empty() && source.producer.is_valid()) made.name = source.name;
}

Ref Translator::tensor(ValueId value) {
  if (values_[value.index].is_valid()) return values_[value.index];
  const argosy::Value& source = (*graph_)[value];
  if (source.weight.is_valid()) {
    const Weight& weight = program_[source.weight];
    Ref& ref = weights_[weight.tied_to.is_valid() ? weight.tied_to : source.weight];
    if (!ref.is_valid()) ref = builder_.weight(weight.source, weight.name);
    return ref;
  }
  if (source.number() != nullptr) {
    Ref ref = number(value);
    return builder_.node("Squeeze", {ref, builder_.ints({0})});
  }
  // Suppresses follow-on errors of a node that was declined and reported.
  if (!diagnostics_.errors.empty()) throw Declined(ErrorCode::kInternal, "", "");
  std::string op = source.producer.is_valid() ? program_.schemas[(*graph_)[source.producer].op].name : "an input";
  throw Declined(ErrorCode::kUnsupportedFeature,
                 format("{} of {} has no translation to ONNX", quoted(source.name, 200), op),
                 "only the first result of this op can be used");
}

Ref Translator::number(ValueId value) {
  const SymType* type = (*graph_)[value].number();
  if (type == nullptr) {  // a tensor where a number is wanted
    return builder_.node("Reshape", {tensor(value), builder_.ints({1})});
  }
  if (auto known = sizes_.value(type->expression)) return *known;
  if (values_[value.index].is_valid()) return values_[value.index];
  NodeId producer = (*graph_)[value].producer;
  if (!producer.is_valid()) throw Declined(ErrorCode::kInternal, "", "");
  const Translation& row = translation_of(producer);
  row.emit(NodeTranslator(*this, producer), row);
  return values_[value.index];
}

const Translation& Translator::translation_of(NodeId node) const {
  const std::string& op = program_.schemas[(*graph_)[node].op].name;
  if (const Translation* own = own_translation(program_, op)) return *own;
  std::span<const Translation* const> rows = translations_.find(op);
  if (rows.empty()) {
    throw Declined(ErrorCode::kUnsupportedOp, format("op {} has no translation to ONNX", op),
                   op.starts_with("aten.")
                       ? "docs/errors/unsupported-op.md says what to do, and how to add a translation"
                       : "it is no op of PyTorch's: see docs/errors/unsupported-op.md");
  }
  return *rows.back();
}

void Translator::translate_node(NodeId node) {
  const argosy::Node& source = (*graph_)[node];
  builder_.set_origin(source.location.is_valid() ? program_.locations[source.location].module_path : std::string());
  try {
    const Translation& row = translation_of(node);
    row.emit(NodeTranslator(*this, node), row);
  } catch (Declined& declined) {
    if (declined.error.message.empty()) return;
    diagnostics_.errors.push_back(
        at_node(std::move(declined.error), program_, *graph_, node).in(format("component {}", component_.name)));
    return;
  }
  for (ValueId output : source.outputs) {
    const TensorType* type = (*graph_)[output].tensor();
    if (type != nullptr && values_[output.index].is_valid()) sizes_.add_root(values_[output.index], type->shape);
  }
}

void Translator::run_nodes() {
  for (NodeId node : graph_->nodes()) {
    if (!is_size_arithmetic(program_, *graph_, (*graph_)[node])) translate_node(node);
  }
}

Ref Translator::output_value(const Argument& output) {
  if (const ValueId* value = output.get_if<ValueId>()) return tensor(*value);
  if (const int64_t* number = output.get_if<int64_t>()) return builder_.integer(*number);
  if (const double* number = output.get_if<double>()) return builder_.scalar(*number, DType::kF64);
  if (const bool* flag = output.get_if<bool>()) return builder_.scalar(int64_t{*flag ? 1 : 0}, DType::kBool);
  return {};
}

Refs Translator::run_subgraph(GraphId graph, const Refs& inputs) {
  const argosy::Graph* outer = graph_;
  std::vector<Ref> outer_values = std::move(values_);
  graph_ = &component_.graphs[graph.index];
  values_.assign(graph_->value_limit(), Ref{});
  std::span<const ValueId> formal = graph_->inputs();
  ARGOSY_CHECK(formal.size() == inputs.size(), "a sub-graph is called with another number of operands");
  for (size_t i = 0; i < inputs.size(); ++i) {
    set(formal[i], inputs[i]);
    if (const TensorType* type = (*graph_)[formal[i]].tensor()) sizes_.add_root(inputs[i], type->shape);
  }
  run_nodes();
  Refs outputs;
  try {
    for (const Argument& output : graph_->outputs()) outputs.push_back(output_value(output));
  } catch (Declined&) {
    graph_ = outer;
    values_ = std::move(outer_values);
    throw;
  }
  graph_ = outer;
  values_ = std::move(outer_values);
  return outputs;
}

void Translator::add_outputs() {
  std::set<std::string> taken;
  for (Ref input : builder_.root().inputs) taken.insert(builder_[input].name);
  // Names of outputs are a contract; inner values that have one of them are renamed.
  std::set<Ref> used(builder_.root().inputs.begin(), builder_.root().inputs.end());
  for (const Initializer& weight : builder_.model().initializers) used.insert(weight.value);
  for (size_t i = 0; i < component_.outputs.size(); ++i) {
    const OutputSpec& spec = component_.outputs[i];
    const Argument& output = graph_->outputs()[i];
    Ref ref = output_value(output);
    if (!ref.is_valid()) continue;  // None
    if (!used.insert(ref).second) ref = builder_.node("Identity", {ref});
    used.insert(ref);
    std::string name = spec.name;
    if (spec.kind == OutputKind::kInputMutation || spec.kind == OutputKind::kBufferMutation) {
      name = format("updated.{}", spec.target);
    } else if (spec.kind == OutputKind::kParameterMutation) {
      continue;
    }
    if (name.empty()) name = format("output_{}", i);
    while (!taken.insert(name).second) name += "_output";
    onnx::Value& value = builder_[ref];
    value.name = std::move(name);
    if (const ValueId* id = output.get_if<ValueId>(); id != nullptr && (*graph_)[*id].tensor() != nullptr) {
      value.shape = dims_of(*(*graph_)[*id].tensor());
    } else {
      value.shape = std::vector<Dim>{};
    }
    builder_.root().outputs.push_back(ref);
  }
}

void Translator::run() {
  builder_.root().name = component_.name;
  add_inputs();
  run_nodes();
  if (!diagnostics_.errors.empty()) return;
  add_outputs();
}

Result<Model> translate(const Program& program, const Component& component, const LoweringOptions& options,
                        Diagnostics& diagnostics) {
  if (options.opset < kMinOpset || options.opset > kMaxOpset) {
    return fail(ErrorCode::kInvalidInput, format("opset {} is not supported", options.opset),
                format("give one from {} to {}", kMinOpset, kMaxOpset));
  }
  Translations translations = all_translations();
  Diagnostics found;
  Translator translator(program, component, options, translations, found);
  try {
    translator.run();
  } catch (Declined& declined) {
    found.errors.push_back(std::move(declined.error));
  }
  if (!found.errors.empty()) {
    Error first = found.errors.front();
    diagnostics.errors.insert(diagnostics.errors.end(), found.errors.begin(), found.errors.end());
    return fail(std::move(first));
  }
  return translator.take();
}

}  // namespace argosy::onnx
