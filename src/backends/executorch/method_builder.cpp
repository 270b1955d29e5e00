#include <algorithm>
#include <set>

#include "backends/executorch/bind_arguments.h"
#include "backends/executorch/bounds.h"
#include "backends/executorch/kernels.h"
#include "backends/executorch/lowering.h"
#include "backends/executorch/memory_plan.h"
#include "backends/executorch/method_values.h"
#include "backends/executorch/multiply_adds.h"
#include "backends/executorch/number_ops.h"
#include "backends/executorch/xnnpack/delegate.h"
#include "base/text.h"

namespace argosy::executorch {
namespace {

/// What is written from call to call: targets of mutations, and what in-place ops write to.
std::set<std::string> written_weights(const Program& program, const Component& component) {
  std::set<std::string> written;
  for (const OutputSpec& output : component.outputs) {
    if (output.kind == OutputKind::kBufferMutation || output.kind == OutputKind::kParameterMutation)
      written.insert(output.target);
  }
  for (const Graph& graph : component.graphs) {
    for (NodeId id : graph.nodes()) {
      const OpSchema& schema = program.schemas[graph[id].op];
      for (size_t i = 0; i < schema.arguments.size(); ++i) {
        if (!schema.arguments[i].is_written) continue;
        const ValueId* value = graph[id].arguments[i].get_if<ValueId>();
        if (value != nullptr && graph[*value].weight.is_valid()) written.insert(program[graph[*value].weight].name);
      }
    }
  }
  return written;
}

bool has_bytes(const Weight& weight) { return !weight.source->recipe().starts_with("shape_only("); }

class MethodBuilder {
 public:
  MethodBuilder(const Program& program, const Component& component, DataTable& data, Diagnostics& diagnostics)
      : program_(program),
        component_(component),
        data_(data),
        diagnostics_(diagnostics),
        values_(method_),
        written_(written_weights(program, component)) {
    method_.name = method_.component = component.name;
    if (auto made_of = component.attributes.find("component"); made_of != component.attributes.end())
      method_.component = made_of->second;
  }

  Result<Method> build() {
    Scope scope{component_.entry(), std::vector<ValueIndex>(component_.entry().value_limit(), kNoValue)};
    ARGOSY_TRY_STATUS(add_inputs(scope));
    ARGOSY_TRY_STATUS(add_nodes(scope));
    if (!status_) return fail(std::move(status_.error()));
    ARGOSY_TRY_STATUS(add_outputs(scope));
    method_.multiply_adds = multiply_adds(program_, component_, component_.entry());
    ARGOSY_TRY_STATUS(plan_memory(method_));
    return std::move(method_);
  }

 private:
  /// A graph whose nodes are being added, and the values that its values have become.
  struct Scope {
    const Graph& graph;
    std::vector<ValueIndex> indices;
  };

  Status add_inputs(Scope& scope) {
    for (const InputSpec& input : component_.inputs) {
      if (!input.value.is_valid()) continue;
      ARGOSY_TRY(ValueIndex index, new_value(scope.graph[input.value].type));
      scope.indices[input.value.index] = index;
      method_.inputs.push_back(index);
      method_.input_names.push_back(input.name);
    }
    return {};
  }

  Result<ValueIndex> new_value(const ValueType& type) {
    const TensorType* tensor_type = std::get_if<TensorType>(&type);
    if (tensor_type == nullptr) return values_.computed_number();
    ARGOSY_TRY(Tensor tensor, tensor_of(*tensor_type));
    return values_.add(std::move(tensor));
  }

  Result<Tensor> tensor_of(const TensorType& type) const {
    Tensor tensor;
    if (!scalar_type(type.dtype))
      return fail(ErrorCode::kUnsupportedFeature, format("ExecuTorch has no tensors of {}", to_text(type.dtype)));
    tensor.dtype = type.dtype;
    ARGOSY_TRY(tensor.sizes, largest_sizes(component_, type));
    tensor.is_dynamic = is_dynamic(type);
    return tensor;
  }

  /// Of the entry graph or of one inlined: weights get their value when somebody uses them.
  Result<ValueIndex> index_of(Scope& scope, ValueId id) {
    ValueIndex& index = scope.indices[id.index];
    if (index != kNoValue) return index;
    const argosy::Value& value = scope.graph[id];
    if (!value.weight.is_valid())
      return fail(ErrorCode::kInternal, format("%{} is used before it is computed", value.name));
    ARGOSY_TRY(index, weight_index(value.weight));
    return index;
  }

  Result<ValueIndex> weight_index(WeightId id) {
    while (program_[id].tied_to.is_valid()) id = program_[id].tied_to;
    auto found = weights_.find(id.index);
    if (found != weights_.end()) return found->second;
    const Weight& weight = program_[id];
    Tensor tensor;
    if (!scalar_type(weight.dtype)) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("ExecuTorch has no tensors of {}, as {} is", to_text(weight.dtype), weight.name));
    }
    tensor.dtype = weight.dtype;
    for (int64_t size : weight.shape) tensor.sizes.push_back(static_cast<int32_t>(size));
    bool is_state = written_.contains(weight.name);
    tensor.storage = is_state ? Storage::kState : Storage::kConstant;
    if (!is_state || has_bytes(weight)) tensor.key = data_.add(weight.name, weight.source);
    ValueIndex index = values_.add(std::move(tensor));
    weights_.emplace(id.index, index);
    return index;
  }

  /// Every op that has no kernel is reported, not only the first one.
  Status add_nodes(Scope& scope) {
    for (NodeId id : scope.graph.nodes()) {
      Status added = add_node(scope, id);
      if (added) continue;
      Error error = at_node(std::move(added.error()), program_, scope.graph, id);
      if (error.code == ErrorCode::kInternal) return fail(std::move(error));
      if (status_) status_ = fail(Error(error));
      diagnostics_.errors.push_back(std::move(error));
      for (ValueId output : scope.graph[id].outputs) {
        auto index = new_value(scope.graph[output].type);
        scope.indices[output.index] = index ? *index : values_.none();
      }
    }
    return {};
  }

  Status add_node(Scope& scope, NodeId id) {
    const Node& node = scope.graph[id];
    const OpSchema& schema = program_.schemas[node.op];
    if (schema.name == "higher_order.delegate") return add_delegate(scope, node);
    if (schema.name == "higher_order.cond") return add_branches(scope, node);
    if (schema.name == "higher_order.scan") return add_scan(scope, node);
    if (node.outputs.size() == 1 && scope.graph[node.outputs[0]].number() != nullptr) return add_number(scope, node);
    if (schema.name == "aten.reshape.default" || schema.name == "aten.unsqueeze.default" ||
        schema.name == "aten.squeeze.dims") {
      ARGOSY_TRY(bool is_done, add_alias(scope, node));
      if (is_done) return {};
    }
    return add_kernel(scope, node, schema);
  }

  Status add_number(Scope& scope, const Node& node) {
    ValueId result = node.outputs[0];
    SymExpr expression = scope.graph[result].number()->expression;
    ValueIndex& index = scope.indices[result.index];
    if (expression.is_valid() && expression.as_integer()) {
      index = values_.integer(*expression.as_integer());
      return {};
    }
    const OpSchema& schema = program_.schemas[node.op];
    std::optional<std::string_view> kernel = number_kernel(schema.name);
    if (!kernel) return no_kernel(schema);
    ARGOSY_TRY(std::vector<ValueIndex> arguments, bound(scope, node, schema, *kernel));
    index = values_.computed_number();
    arguments.push_back(index);
    values_.call(*kernel, std::move(arguments));
    return {};
  }

  Status no_kernel(const OpSchema& schema) const {
    std::string_view hint = schema.name.starts_with("aten.")
                                ? "please report the model; nothing in it needs to change"
                                : "it is no op of PyTorch's: see docs/errors/unsupported-op.md";
    return fail(ErrorCode::kUnsupportedOp, format("{} has no kernel in ExecuTorch", schema.name), std::string(hint));
  }

  Result<std::vector<ValueIndex>> bound(Scope& scope, const Node& node, const OpSchema& schema,
                                        std::string_view kernel) {
    // Weights are made now, so that the lookup below cannot fail.
    Status status;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id, uint32_t) {
        if (!id.is_valid() || !status) return;
        auto index = index_of(scope, id);
        if (!index) status = fail(std::move(index.error()));
      });
    }
    if (!status) return fail(std::move(status.error()));
    return bind_arguments(schema, node, kernel, values_, [&](ValueId id) { return scope.indices[id.index]; });
  }

  Status add_kernel(Scope& scope, const Node& node, const OpSchema& schema) {
    std::optional<std::string_view> kernel = kernel_for(schema.name);
    if (!kernel) return no_kernel(schema);
    ARGOSY_TRY(std::vector<ValueIndex> arguments, bound(scope, node, schema, *kernel));
    if (schema.writes_any_argument()) return add_in_place(scope, node, schema, *kernel, std::move(arguments));
    std::vector<ValueIndex> results;
    for (ValueId output : node.outputs) {
      ARGOSY_TRY(ValueIndex index, new_value(scope.graph[output].type));
      scope.indices[output.index] = index;
      results.push_back(index);
    }
    if (schema.returns.size() == 1 && schema.returns[0].type.is_list) {
      ValueIndex list = values_.tensors(std::move(results), false);
      arguments.insert(arguments.end(), {list, list});
    } else if (results.size() == 1) {
      arguments.insert(arguments.end(), {results[0], results[0]});
    } else {
      arguments.insert(arguments.end(), results.begin(), results.end());
      arguments.push_back(values_.tensors(std::move(results), false));
    }
    values_.call(*kernel, std::move(arguments));
    return {};
  }

  /// The result is what was written, unless the kernel has a result of its own beside it ("out" of
  /// llama::update_cache).
  Status add_in_place(Scope& scope, const Node& node, const OpSchema& schema, std::string_view kernel,
                      std::vector<ValueIndex> arguments) {
    auto written = std::ranges::find_if(schema.arguments, &SchemaArgument::is_written);
    ValueIndex target = arguments[static_cast<size_t>(written - schema.arguments.begin())];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      bool is_target = i < schema.returns.size() && schema.returns[i].is_written;
      if (is_target) {
        scope.indices[node.outputs[i].index] = target;
        // A kernel that insists on a result of its own, and leaves it as it is, gets what it has written.
        if (kernel.ends_with(".out")) arguments.push_back(target);
      } else {
        ARGOSY_TRY(scope.indices[node.outputs[i].index], new_value(scope.graph[node.outputs[i]].type));
        arguments.push_back(scope.indices[node.outputs[i].index]);
      }
      arguments.push_back(scope.indices[node.outputs[i].index]);
    }
    values_.call(kernel, std::move(arguments));
    return {};
  }

  /// A reshape moves no bytes: the result has those of the operand. False: it has to be copied.
  Result<bool> add_alias(Scope& scope, const Node& node) {
    ARGOSY_TRY(ValueIndex self, index_of(scope, std::get<ValueId>(node.arguments[0].variant())));
    ValueId result = node.outputs[0];
    ARGOSY_TRY(Tensor tensor, tensor_of(*scope.graph[result].tensor()));
    ValueIndex root = values_.root_of(self);
    const Tensor& from = values_.tensor(root);
    if (from.storage == Storage::kState) return false;  // it may be written before the result is read
    if (from.storage == Storage::kConstant) {
      tensor.storage = Storage::kConstant;
      tensor.key = from.key;
      scope.indices[result.index] = values_.add(std::move(tensor));
      return true;
    }
    // Bounds of a product of sizes may be coarser than those of the sizes.
    if (tensor_bytes(tensor) > tensor_bytes(from)) return false;
    bool is_input = std::ranges::find(method_.inputs, root) != method_.inputs.end();
    bool needs_call = tensor.is_dynamic || is_input;  // for its size, or for where the caller's bytes are
    std::vector<ValueIndex> sizes;
    if (needs_call) {
      ARGOSY_TRY(std::optional<std::vector<ValueIndex>> found, view_sizes(scope, node));
      if (!found) return false;
      sizes = *std::move(found);
    }
    tensor.alias_of = self;
    ValueIndex index = values_.add(std::move(tensor));
    scope.indices[result.index] = index;
    if (needs_call) values_.call("executorch_prim::et_view.default", {self, values_.integers(std::move(sizes)), index});
    return true;
  }

  /// The sizes of the result: numbers, one -1, or what a reshape was given. nullopt: not known without more work.
  Result<std::optional<std::vector<ValueIndex>>> view_sizes(Scope& scope, const Node& node) {
    const TensorType& type = *scope.graph[node.outputs[0]].tensor();
    std::vector<ValueIndex> sizes;
    int unknown = 0;
    for (SymExpr size : type.shape) {
      std::optional<int64_t> number = size.is_valid() ? size.as_integer() : std::nullopt;
      if (!number) ++unknown;
      sizes.push_back(values_.integer(number.value_or(-1)));
    }
    bool has_zero = std::ranges::any_of(
        type.shape, [](SymExpr size) { return size.is_valid() && size.as_integer() == std::optional<int64_t>(0); });
    if (unknown <= (has_zero ? 0 : 1)) return std::optional(std::move(sizes));
    if (program_.schemas[node.op].name != "aten.reshape.default") return std::optional<std::vector<ValueIndex>>();
    const auto* given = node.arguments[1].get_if<IntList>();
    if (given == nullptr) return std::optional<std::vector<ValueIndex>>();
    for (size_t i = 0; i < sizes.size() && i < given->size(); ++i) {
      const ValueId* id = std::get_if<ValueId>(&(*given)[i]);
      if (id == nullptr) continue;
      ARGOSY_TRY(sizes[i], index_of(scope, *id));
    }
    return std::optional(std::move(sizes));
  }

  Status add_delegate(Scope& scope, const Node& node) {
    const Graph& body = component_.graphs[std::get<GraphId>(node.arguments[1].variant()).index];
    ARGOSY_TRY(Delegate delegate, build_xnnpack_delegate(program_, component_, body, data_));
    DelegateCall call{static_cast<uint32_t>(method_.delegates.size()), {}};
    method_.delegates.push_back(std::move(delegate));
    for (ValueId operand : std::get<ValueList>(node.arguments[2].variant())) {
      ARGOSY_TRY(ValueIndex index, index_of(scope, operand));
      call.arguments.push_back(index);
    }
    for (ValueId output : node.outputs) {
      ARGOSY_TRY(ValueIndex index, new_value(scope.graph[output].type));
      scope.indices[output.index] = index;
      call.arguments.push_back(index);
    }
    values_.add_instruction(std::move(call));
    return {};
  }

  /// higher_order.cond(pred, true_graph, false_graph, operands): both graphs in a row, with jumps around them.
  Status add_branches(Scope& scope, const Node& node) {
    ValueIndex condition;
    if (const bool* known = node.arguments[0].get_if<bool>()) {
      condition = values_.boolean(*known);
    } else {
      ARGOSY_TRY(condition, index_of(scope, std::get<ValueId>(node.arguments[0].variant())));
    }
    std::vector<ValueIndex> results;
    for (ValueId output : node.outputs) {
      ARGOSY_TRY(ValueIndex index, new_value(scope.graph[output].type));
      scope.indices[output.index] = index;
      results.push_back(index);
    }
    size_t to_second = method_.instructions.size();
    values_.add_instruction(JumpIfFalse{condition, 0});
    ARGOSY_TRY_STATUS(inline_graph(scope, node, 1, results));
    size_t to_end = method_.instructions.size();
    values_.add_instruction(JumpIfFalse{values_.boolean(false), 0});
    std::get<JumpIfFalse>(method_.instructions[to_second]).target = static_cast<uint32_t>(to_end + 1);
    ARGOSY_TRY_STATUS(inline_graph(scope, node, 2, results));
    // A jump must lead to an instruction, and outputs may follow at once.
    std::get<JumpIfFalse>(method_.instructions[to_end]).target = static_cast<uint32_t>(method_.instructions.size());
    values_.add_instruction(Move{values_.boolean(false), values_.computed_number()});
    return {};
  }

  Status inline_graph(Scope& scope, const Node& node, size_t argument, const std::vector<ValueIndex>& results) {
    const Graph& graph = component_.graphs[std::get<GraphId>(node.arguments[argument].variant()).index];
    Scope inner{graph, std::vector<ValueIndex>(graph.value_limit(), kNoValue)};
    std::vector<ValueIndex> operands;
    if (const auto* list = node.arguments[3].get_if<ValueList>()) {
      for (ValueId id : *list) {
        ARGOSY_TRY(ValueIndex index, index_of(scope, id));
        operands.push_back(index);
      }
    } else if (const auto* numbers = node.arguments[3].get_if<IntList>(); numbers != nullptr && !numbers->empty()) {
      return fail(ErrorCode::kUnsupportedFeature, "a branch on numbers is not written for ExecuTorch");
    }
    for (size_t i = 0; i < graph.inputs().size(); ++i) inner.indices[graph.inputs()[i].index] = operands[i];
    ARGOSY_TRY_STATUS(add_nodes(inner));
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId* id = graph.outputs()[i].get_if<ValueId>();
      if (id == nullptr || graph[*id].tensor() == nullptr)
        return fail(ErrorCode::kUnsupportedFeature, "a branch whose result is a number is not written for ExecuTorch");
      ARGOSY_TRY(ValueIndex from, index_of(inner, *id));
      copy(from, results[i]);
    }
    return {};
  }

  /// higher_order.scan(combine, init, xs, additional): its graph once, with a jump back. States have tensors of their
  /// own, which every step writes anew; results of steps are put side by side.
  Status add_scan(Scope& scope, const Node& node) {
    const Graph& graph = component_.graphs[std::get<GraphId>(node.arguments[0].variant()).index];
    ARGOSY_TRY(std::vector<ValueIndex> initial, operands_of(scope, node.arguments[1]));
    ARGOSY_TRY(std::vector<ValueIndex> sequences, operands_of(scope, node.arguments[2]));
    ARGOSY_TRY(std::vector<ValueIndex> shared, operands_of(scope, node.arguments[3]));
    size_t inputs = initial.size() + sequences.size() + shared.size();
    if (sequences.empty() || graph.inputs().size() != inputs || node.outputs.size() < initial.size())
      return fail(ErrorCode::kUnsupportedFeature, "such a scan is not written for ExecuTorch");

    std::vector<ValueIndex> states, rows;
    Scope inner{graph, std::vector<ValueIndex>(graph.value_limit(), kNoValue)};
    for (size_t i = 0; i < initial.size(); ++i) {
      ARGOSY_TRY(ValueIndex state, new_value(scope.graph[node.outputs[i]].type));
      copy(initial[i], state);
      states.push_back(state);
      scope.indices[node.outputs[i].index] = state;
      inner.indices[graph.inputs()[i].index] = state;
    }
    ValueIndex step = values_.computed_number(), count = values_.computed_number(), is_done = values_.computed_number();
    values_.call("aten::sym_size.int", {sequences[0], values_.integer(0), count});
    for (size_t i = initial.size(); i < node.outputs.size(); ++i) {
      ARGOSY_TRY(ValueIndex all, new_value(scope.graph[node.outputs[i]].type));
      values_.tensor(all).is_dynamic = true;  // grows with every step
      scope.indices[node.outputs[i].index] = all;
      rows.push_back(all);
      // Its bytes are needed from here on.
      std::vector<ValueIndex> none(values_.tensor(all).sizes.size(), values_.integer(0));
      values_.call("aten::empty.out", {values_.integers(std::move(none)), values_.none(), all, all});
    }
    for (size_t i = 0; i < shared.size(); ++i)
      inner.indices[graph.inputs()[initial.size() + sequences.size() + i].index] = shared[i];
    values_.add_instruction(Move{values_.integer(0), step});

    auto begin = static_cast<uint32_t>(method_.instructions.size());
    for (size_t i = 0; i < sequences.size(); ++i) {
      ValueId input = graph.inputs()[initial.size() + i];
      ARGOSY_TRY(ValueIndex part, new_value(graph[input].type));
      inner.indices[input.index] = part;
      values_.call("aten::select_copy.int_out", {sequences[i], values_.integer(0), step, part, part});
    }
    ARGOSY_TRY_STATUS(add_nodes(inner));
    std::vector<ValueIndex> results;
    for (const Argument& output : graph.outputs()) {
      const ValueId* id = output.get_if<ValueId>();
      if (id == nullptr || graph[*id].tensor() == nullptr)
        return fail(ErrorCode::kUnsupportedFeature, "a scan whose result is no tensor is not written for ExecuTorch");
      ARGOSY_TRY(ValueIndex index, index_of(inner, *id));
      results.push_back(index);
    }
    if (results.size() != states.size() + rows.size())
      return fail(ErrorCode::kUnsupportedFeature, "such a scan is not written for ExecuTorch");
    for (size_t i = 0; i < rows.size(); ++i) append_row(rows[i], results[states.size() + i], step);
    // A step that hands one state on as another would overwrite what it still has to read.
    for (size_t i = 0; i < states.size(); ++i) {
      bool is_state = std::ranges::find(states, values_.root_of(results[i])) != states.end();
      if (!is_state || results[i] == states[i]) continue;
      ValueIndex held = values_.add(Tensor(values_.tensor(states[i])));
      copy(results[i], held);
      results[i] = held;
    }
    for (size_t i = 0; i < states.size(); ++i) {
      if (results[i] != states[i]) copy(results[i], states[i]);
    }
    values_.call("executorch_prim::add.Scalar", {step, values_.integer(1), step});
    values_.call("executorch_prim::eq.Scalar", {step, count, is_done});
    values_.add_instruction(JumpIfFalse{is_done, begin});
    return {};
  }

  /// The kernel grows the first dim by itself, but wants the others to be right.
  void append_row(ValueIndex rows, ValueIndex row, ValueIndex step) {
    std::vector<ValueIndex> sizes = {step};
    const size_t rank = values_.tensor(row).sizes.size();
    for (size_t i = 0; i < rank; ++i) {
      if (!values_.tensor(row).is_dynamic) {
        sizes.push_back(values_.integer(values_.tensor(row).sizes[i]));
        continue;
      }
      sizes.push_back(values_.computed_number());
      values_.call("aten::sym_size.int", {row, values_.integer(static_cast<int64_t>(i)), sizes.back()});
    }
    values_.call("aten::empty.out", {values_.integers(std::move(sizes)), values_.none(), rows, rows});
    values_.call("executorch_prim::et_copy_index.tensor", {rows, row, step});
  }

  Result<std::vector<ValueIndex>> operands_of(Scope& scope, const Argument& argument) {
    std::vector<ValueIndex> operands;
    const auto* list = argument.get_if<ValueList>();
    const auto* numbers = argument.get_if<IntList>();
    if (list == nullptr && (numbers == nullptr || !numbers->empty()))
      return fail(ErrorCode::kUnsupportedFeature, "a loop over numbers is not written for ExecuTorch");
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      ARGOSY_TRY(ValueIndex index, index_of(scope, (*list)[i]));
      operands.push_back(index);
    }
    return operands;
  }

  void copy(ValueIndex from, ValueIndex to) { values_.call("aten::alias_copy.out", {from, to, to}); }

  Status add_outputs(Scope& scope) {
    std::set<ValueIndex> given;
    std::vector<std::pair<ValueIndex, ValueIndex>> writes;  // of states, after everything that reads them
    for (size_t i = 0; i < component_.outputs.size(); ++i) {
      const OutputSpec& output = component_.outputs[i];
      const Argument& argument = scope.graph.outputs()[i];
      const ValueId* id = argument.get_if<ValueId>();
      if (output.kind == OutputKind::kBufferMutation || output.kind == OutputKind::kParameterMutation) {
        ARGOSY_TRY(ValueIndex state, state_index(output.target));
        ARGOSY_TRY(ValueIndex value, index_of(scope, *id));
        if (value != state) writes.emplace_back(state, value);
        continue;
      }
      if (output.kind == OutputKind::kInputMutation) continue;  // callers get results, not changed inputs
      ValueIndex index = kNoValue;
      if (id == nullptr) {
        ARGOSY_TRY(index, constant_output(argument));
      } else {
        ARGOSY_TRY(index, index_of(scope, *id));
        if (scope.graph[*id].tensor() != nullptr && !is_own_result(index, given)) {
          ARGOSY_TRY(ValueIndex result, new_value(scope.graph[*id].type));
          copy(index, result);
          index = result;
        }
      }
      given.insert(index);
      method_.outputs.push_back(index);
      method_.output_names.push_back(output.name);
    }
    for (auto [state, value] : writes) values_.call("aten::copy_", {state, value, values_.boolean(false), state});
    return {};
  }

  /// Whether a tensor can be given to the caller as it is: computed by this call, and given only once.
  bool is_own_result(ValueIndex index, const std::set<ValueIndex>& given) {
    ValueIndex root = values_.root_of(index);
    return values_.tensor(root).storage == Storage::kPlanned && !given.contains(index) &&
           std::ranges::find(method_.inputs, root) == method_.inputs.end();
  }

  Result<ValueIndex> state_index(const std::string& name) {
    std::optional<WeightId> id = program_.find_weight(name);
    if (!id) return fail(ErrorCode::kInternal, format("{} is written, but there is no such weight", name));
    return weight_index(*id);
  }

  Result<ValueIndex> constant_output(const Argument& argument) {
    if (argument.is<None>()) return values_.none();
    if (const auto* number = argument.get_if<int64_t>()) return values_.integer(*number);
    if (const auto* number = argument.get_if<double>()) return values_.real(*number);
    if (const auto* flag = argument.get_if<bool>()) return values_.boolean(*flag);
    return fail(ErrorCode::kUnsupportedFeature, "a result that is neither a tensor nor a number");
  }

  const Program& program_;
  const Component& component_;
  DataTable& data_;
  Diagnostics& diagnostics_;
  Method method_;
  MethodValues values_;
  std::set<std::string> written_;
  std::map<uint32_t, ValueIndex> weights_;
  Status status_;
};

}  // namespace

Result<Method> build_method(const Program& program, const Component& component, DataTable& data,
                            Diagnostics& diagnostics) {
  return MethodBuilder(program, component, data, diagnostics).build();
}

}  // namespace argosy::executorch
