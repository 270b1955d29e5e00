#include "backends/onnx/edit_inputs.h"

#include <algorithm>
#include <vector>

#include "backends/onnx/edit.h"
#include "backends/onnx/kernel_types.h"
#include "base/text.h"

namespace argosy::onnx {

Status rename_dim(Model& model, std::string_view from, std::string_view to) {
  Dim before{std::string(from)}, after{std::string(to)};
  for (const Value& value : model.values) {
    if (value.shape && std::ranges::find(*value.shape, after) != value.shape->end())
      return fail(ErrorCode::kInvalidInput, format("the graph has a dim called {} already", quoted(to)));
  }
  for (Value& value : model.values) {
    if (value.shape) std::ranges::replace(*value.shape, before, after);
  }
  return {};
}

Status order_inputs(Model& model, std::span<const std::string> names) {
  std::vector<Ref> last;
  for (const std::string& name : names) {
    last.push_back(find_input(model, name));
    if (!last.back().is_valid()) return fail(no_such_port(model, "input", name));
  }
  std::vector<Ref>& inputs = model.graphs[0].inputs;
  std::erase_if(inputs, [&](Ref input) { return std::ranges::find(last, input) != last.end(); });
  inputs.insert(inputs.end(), last.begin(), last.end());
  return {};
}

Status cast_input(Model& model, std::string_view name, std::string_view dtype) {
  Ref inner = find_input(model, name);
  if (!inner.is_valid()) return fail(no_such_port(model, "input", name));
  auto outer_dtype = dtype_from_text(dtype);
  if (!outer_dtype || !model[inner].dtype)
    return fail(ErrorCode::kInvalidInput, format("there is no cast of {} from {}", quoted(name), quoted(dtype)));
  Ref outer = split_input(model, inner);
  model[outer].dtype = *outer_dtype;
  Node cast{"Cast", "", {outer}, {inner}, {{"to", int64_t{onnx_type(*model[inner].dtype)}}}};
  model.graphs[0].nodes.insert(model.graphs[0].nodes.begin(), std::move(cast));
  return {};
}

Status assume_ones(Model& model, std::string_view name, std::string_view like) {
  Ref input = find_input(model, name), shaped = find_input(model, like);
  if (!input.is_valid()) return fail(no_such_port(model, "input", name));
  if (!shaped.is_valid()) return fail(no_such_port(model, "input", like));
  if (model[input].dtype != DType::kI64)
    return fail(ErrorCode::kInvalidInput, format("{} is not of 64-bit integers", quoted(name)));
  std::vector<std::byte> one(sizeof(int64_t));
  one[0] = std::byte{1};
  ARGOSY_TRY(TensorSourcePtr value, literal(std::move(one), DType::kI64, {1}));
  std::erase(model.graphs[0].inputs, input);
  model[input].name.clear();
  Ref sizes = add_value(model, {"", DType::kI64, std::nullopt});
  std::vector<Node>& root = model.graphs[0].nodes;
  root.insert(root.begin(), {"ConstantOfShape", "", {sizes}, {input}, {{"value", std::move(value)}}});
  root.insert(root.begin(), {"Shape", "", {shaped}, {sizes}});
  return {};
}

Status accept_empty_state(Model& model, std::string_view input, int dim) {
  Ref inner = find_input(model, input);
  if (!inner.is_valid()) return fail(no_such_port(model, "input", input));
  const auto& shape = model[inner].shape;
  if (!shape || static_cast<size_t>(dim) >= shape->size())
    return fail(ErrorCode::kInvalidInput, format("{} has no dim {}", quoted(input), dim));
  std::vector<Dim> dims = *shape;
  Ref outer = split_input(model, inner);
  // A tensor without elements can be given any shape without elements; all others keep theirs.
  std::vector<Node> nodes;
  std::vector<Ref> sizes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (const int64_t* number = std::get_if<int64_t>(&dims[i])) {
      sizes.push_back(add_ints(model, {*number}));
      (*model[outer].shape)[i] = Dim("");
      continue;
    }
    auto index = static_cast<int64_t>(i);
    sizes.push_back(add_value(model, {"", DType::kI64, {{Dim(int64_t{1})}}}));
    nodes.push_back({"Shape", "", {outer}, {sizes.back()}, {{"start", index}, {"end", index + 1}}});
  }
  Ref whole = add_value(model, {"", DType::kI64, {{Dim(static_cast<int64_t>(sizes.size()))}}});
  nodes.push_back({"Concat", "", std::move(sizes), {whole}, {{"axis", int64_t{0}}}});
  nodes.push_back({"Reshape", "", {outer, whole}, {inner}, {{"allowzero", int64_t{1}}}});
  std::vector<Node>& root = model.graphs[0].nodes;
  root.insert(root.begin(), std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  return {};
}

}  // namespace argosy::onnx
