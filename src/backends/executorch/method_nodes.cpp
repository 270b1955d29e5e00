#include <algorithm>

#include "backends/executorch/bind_arguments.h"
#include "backends/executorch/kernels.h"
#include "backends/executorch/memory_plan.h"
#include "backends/executorch/method_builder.h"
#include "backends/executorch/number_ops.h"
#include "backends/executorch/xnnpack/delegate.h"
#include "base/text.h"

namespace argosy::executorch {

Status MethodBuilder::add_nodes(Scope& scope) {
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

Status MethodBuilder::add_node(Scope& scope, NodeId id) {
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

Status MethodBuilder::add_number(Scope& scope, const Node& node) {
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

Status MethodBuilder::no_kernel(const OpSchema& schema) const {
  std::string_view hint = schema.name.starts_with("aten.")
                              ? "docs/errors/unsupported-op.md says what to do, and how to add one of other ops"
                              : "it is no op of PyTorch's: see docs/errors/unsupported-op.md";
  return fail(ErrorCode::kUnsupportedOp, format("{} has no kernel in ExecuTorch", schema.name), std::string(hint));
}

Result<std::vector<ValueIndex>> MethodBuilder::bound(Scope& scope, const Node& node, const OpSchema& schema,
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

Status MethodBuilder::add_kernel(Scope& scope, const Node& node, const OpSchema& schema) {
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

Status MethodBuilder::add_in_place(Scope& scope, const Node& node, const OpSchema& schema, std::string_view kernel,
                                   std::vector<ValueIndex> arguments) {
  auto written = std::ranges::find_if(schema.arguments, &SchemaArgument::is_written);
  ValueIndex target = arguments[static_cast<size_t>(written - schema.arguments.begin())];
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    bool is_target = i < schema.returns.size() && schema.returns[i].is_written;
    if (is_target) {
      scope.indices[node.outputs[i].index] = target;
      // A kernel that takes an out tensor but does not change it is given the tensor that it writes.
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

Result<bool> MethodBuilder::add_alias(Scope& scope, const Node& node) {
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

Result<std::optional<std::vector<ValueIndex>>> MethodBuilder::view_sizes(Scope& scope, const Node& node) {
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

Status MethodBuilder::add_delegate(Scope& scope, const Node& node) {
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

}  // namespace argosy::executorch
