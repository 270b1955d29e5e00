#include "backends/executorch/method_builder.h"

#include <algorithm>

#include "backends/executorch/bounds.h"
#include "backends/executorch/lowering.h"
#include "backends/executorch/memory_plan.h"
#include "backends/executorch/multiply_adds.h"
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

}  // namespace

MethodBuilder::MethodBuilder(const Program& program, const Component& component, DataTable& data,
                             Diagnostics& diagnostics)
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

Result<Method> MethodBuilder::build() {
  Scope scope{component_.entry(), std::vector<ValueIndex>(component_.entry().value_limit(), kNoValue)};
  ARGOSY_TRY_STATUS(add_inputs(scope));
  ARGOSY_TRY_STATUS(add_nodes(scope));
  if (!status_) return fail(std::move(status_.error()));
  ARGOSY_TRY_STATUS(add_outputs(scope));
  method_.multiply_adds = multiply_adds(program_, component_, component_.entry());
  ARGOSY_TRY_STATUS(plan_memory(method_));
  return std::move(method_);
}

Status MethodBuilder::add_inputs(Scope& scope) {
  for (const InputSpec& input : component_.inputs) {
    if (!input.value.is_valid()) continue;
    ARGOSY_TRY(ValueIndex index, new_value(scope.graph[input.value].type));
    scope.indices[input.value.index] = index;
    method_.inputs.push_back(index);
    method_.input_names.push_back(input.name);
  }
  return {};
}

Result<ValueIndex> MethodBuilder::new_value(const ValueType& type) {
  const TensorType* tensor_type = std::get_if<TensorType>(&type);
  if (tensor_type == nullptr) return values_.computed_number();
  ARGOSY_TRY(Tensor tensor, tensor_of(*tensor_type));
  return values_.add(std::move(tensor));
}

Result<Tensor> MethodBuilder::tensor_of(const TensorType& type) const {
  Tensor tensor;
  if (!scalar_type(type.dtype))
    return fail(ErrorCode::kUnsupportedFeature, format("ExecuTorch has no tensors of {}", to_text(type.dtype)));
  tensor.dtype = type.dtype;
  ARGOSY_TRY(tensor.sizes, largest_sizes(component_, type));
  tensor.is_dynamic = is_dynamic(type);
  return tensor;
}

Result<ValueIndex> MethodBuilder::index_of(Scope& scope, ValueId id) {
  ValueIndex& index = scope.indices[id.index];
  if (index != kNoValue) return index;
  const argosy::Value& value = scope.graph[id];
  if (!value.weight.is_valid())
    return fail(ErrorCode::kInternal, format("%{} is used before it is computed", value.name));
  ARGOSY_TRY(index, weight_index(value.weight));
  return index;
}

Result<ValueIndex> MethodBuilder::weight_index(WeightId id) {
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

Status MethodBuilder::add_outputs(Scope& scope) {
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

bool MethodBuilder::is_own_result(ValueIndex index, const std::set<ValueIndex>& given) {
  ValueIndex root = values_.root_of(index);
  return values_.tensor(root).storage == Storage::kPlanned && !given.contains(index) &&
         std::ranges::find(method_.inputs, root) == method_.inputs.end();
}

Result<ValueIndex> MethodBuilder::state_index(const std::string& name) {
  std::optional<WeightId> id = program_.find_weight(name);
  if (!id) return fail(ErrorCode::kInternal, format("{} is written, but there is no such weight", name));
  return weight_index(*id);
}

Result<ValueIndex> MethodBuilder::constant_output(const Argument& argument) {
  if (argument.is<None>()) return values_.none();
  if (const auto* number = argument.get_if<int64_t>()) return values_.integer(*number);
  if (const auto* number = argument.get_if<double>()) return values_.real(*number);
  if (const auto* flag = argument.get_if<bool>()) return values_.boolean(*flag);
  return fail(ErrorCode::kUnsupportedFeature, "a result that is neither a tensor nor a number");
}

Result<Method> build_method(const Program& program, const Component& component, DataTable& data,
                            Diagnostics& diagnostics) {
  return MethodBuilder(program, component, data, diagnostics).build();
}

}  // namespace argosy::executorch
