#include "backends/onnx/edit_media.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "backends/onnx/edit.h"
#include "backends/onnx/kernel_types.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

/// Nodes to be put in front of a model's own.
class Front {
 public:
  explicit Front(Model& model) : model_(model) {}

  /// A node with one result of a dtype; the shape is nobody's concern inside.
  Ref node(std::string op, std::vector<Ref> inputs, DType dtype, std::vector<Attribute> attributes = {}) {
    Ref result = add_value(model_, {"", dtype, std::nullopt});
    give(std::move(op), std::move(inputs), result, std::move(attributes));
    return result;
  }
  Ref node(std::string op, std::vector<Ref> inputs, std::vector<Attribute> attributes = {}) {
    return node(std::move(op), std::move(inputs), DType::kI64, std::move(attributes));
  }
  /// The same for a result that is there already.
  void give(std::string op, std::vector<Ref> inputs, Ref result, std::vector<Attribute> attributes = {}) {
    nodes_.push_back({std::move(op), "", std::move(inputs), {result}, std::move(attributes)});
  }
  Ref ints(const std::vector<int64_t>& values) { return add_ints(model_, values); }
  Ref integer(int64_t value) { return add_integer(model_, value); }
  /// One size of a tensor, with one dim.
  Ref size(Ref tensor, int64_t dim) { return node("Shape", {tensor}, {{"start", dim}, {"end", dim + 1}}); }
  Ref cast(Ref value, DType dtype) { return node("Cast", {value}, dtype, {{"to", to_attribute(dtype)}}); }
  void give_cast(Ref value, Ref result) {
    give("Cast", {value}, result, {{"to", to_attribute(model_[result].dtype.value_or(DType::kI64))}});
  }
  Ref concat(std::vector<Ref> parts) { return node("Concat", std::move(parts), {{"axis", int64_t{0}}}); }

  void insert() {
    std::vector<Node>& root = model_.graphs[0].nodes;
    root.insert(root.begin(), std::make_move_iterator(nodes_.begin()), std::make_move_iterator(nodes_.end()));
  }

 private:
  static int64_t to_attribute(DType dtype) { return onnx_type(dtype); }

  Model& model_;
  std::vector<Node> nodes_;
};

/// Takes an input away from callers; the value stays, without a name and a producer.
Ref take_input(Model& model, Ref input) {
  std::erase(model.graphs[0].inputs, input);
  model[input].name.clear();
  return input;
}

Ref add_input(Model& model, std::string_view name, std::vector<Dim> shape) {
  Ref input = add_value(model, {std::string(name), DType::kI64, std::move(shape)});
  model.graphs[0].inputs.push_back(input);
  return input;
}

bool is_read(const Model& model, Ref value) {
  for (const Graph& graph : model.graphs) {
    if (std::ranges::find(graph.outputs, value) != graph.outputs.end()) return true;
    for (const Node& node : graph.nodes) {
      if (std::ranges::find(node.inputs, value) != node.inputs.end()) return true;
    }
  }
  return false;
}

}  // namespace

Status drop_input(Model& model, std::string_view name) {
  Ref input = find_input(model, name);
  if (!input.is_valid()) return fail(no_such_port(model, "input", name));
  if (is_read(model, input))
    return fail(ErrorCode::kInvalidInput, format("the input {} cannot go: the graph reads it", quoted(name)));
  take_input(model, input);
  return {};
}

Status compute_token_types(Model& model, std::string_view name, const TokenTypeSource& source) {
  Ref types = find_input(model, name), mask = find_input(model, source.mask);
  if (!types.is_valid()) return fail(no_such_port(model, "input", name));
  if (!mask.is_valid()) return fail(no_such_port(model, "input", source.mask));
  take_input(model, types);
  Ref tokens = find_input(model, source.tokens);
  if (!tokens.is_valid()) tokens = add_input(model, source.tokens, {std::string("batch"), std::string("sequence")});
  Front front(model);
  Ref past = front.node("Sub", {front.size(mask, 1), front.size(tokens, 1)});
  if (source.media_token) {
    Ref is_media = front.node("Equal", {tokens, front.integer(*source.media_token)}, DType::kBool);
    Ref zero = front.ints({0});
    front.give("Pad", {front.cast(is_media, *model[types].dtype), front.concat({zero, past, zero, zero})}, types);
  } else {
    Ref has_past = front.node("Greater", {past, front.integer(0)}, DType::kBool);
    front.give("Expand", {front.cast(has_past, *model[types].dtype), front.node("Shape", {mask})}, types);
  }
  front.insert();
  return {};
}

Status group_rows(Model& model, std::string_view output, int64_t rows) {
  Ref inner = find_output(model, output);
  if (!inner.is_valid()) return fail(no_such_port(model, "output", output));
  const auto& shape = model[inner].shape;
  const int64_t* width = shape && shape->size() == 2 ? std::get_if<int64_t>(&shape->back()) : nullptr;
  if (width == nullptr || rows <= 0)
    return fail(ErrorCode::kInvalidInput, format("the output {} has no rows of a fixed size", quoted(output)));
  int64_t columns = *width;
  Ref outer = split_output(model, inner);
  model[outer].shape = std::vector<Dim>{std::string(), rows, columns};
  Node node{"Reshape", "", {inner, add_ints(model, {-1, rows, columns})}, {outer}};
  model.graphs[0].nodes.push_back(std::move(node));
  return {};
}

Status accept_grouped_rows(Model& model, std::string_view input) {
  Ref inner = find_input(model, input);
  if (!inner.is_valid()) return fail(no_such_port(model, "input", input));
  const auto& shape = model[inner].shape;
  const int64_t* width = shape && shape->size() == 2 ? std::get_if<int64_t>(&shape->back()) : nullptr;
  if (width == nullptr)
    return fail(ErrorCode::kInvalidInput, format("the input {} has no rows of a fixed size", quoted(input)));
  int64_t columns = *width;
  Ref outer = split_input(model, inner);
  model[outer].shape.reset();
  Front front(model);
  front.give("Reshape", {outer, front.ints({-1, columns})}, inner);
  front.insert();
  return {};
}

Status compute_patch_positions(Model& model, std::string_view grid, const PatchOrder& order) {
  if (find_input(model, grid).is_valid())
    return fail(ErrorCode::kInvalidInput, format("the graph has an input {} already", quoted(grid)));
  Ref positions = find_input(model, "position_ids"), bounds = find_input(model, "cu_seqlens");
  Ref window_index = find_input(model, "window_index"), window_bounds = find_input(model, "cu_window_seqlens");
  if (window_index.is_valid() && order.window <= 0)
    return fail(ErrorCode::kInvalidInput, "the graph has windows of patches, whose size is not known");
  Ref sizes = add_input(model, grid, {int64_t{1}, int64_t{3}});
  Front front(model);
  Ref flat = front.node("Reshape", {sizes, front.ints({3})});
  auto part = [&](int64_t i) { return front.node("Slice", {flat, front.ints({i}), front.ints({i + 1})}); };
  Ref frames = part(0), rows = part(1), columns = part(2);  // each with one dim
  auto scalar = [&](Ref value) { return front.node("Squeeze", {value, front.ints({0})}); };
  auto range = [&](Ref end) { return front.node("Range", {front.integer(0), scalar(end), front.integer(1)}); };
  Ref area = front.node("Mul", {rows, columns});
  Ref merge = front.ints({order.merge_size});
  Ref block_rows = front.node("Div", {rows, merge}), block_columns = front.node("Div", {columns, merge});

  if (positions.is_valid()) {
    // Patches are numbered row by row, then put into the order of blocks.
    take_input(model, positions);
    Ref blocks = front.node("Reshape", {range(area), front.concat({block_rows, merge, block_columns, merge})});
    Ref ordered = front.node("Transpose", {blocks}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    Ref number = front.node("Reshape", {ordered, front.ints({-1, 1})});
    Ref row = front.node("Div", {number, columns}), column = front.node("Mod", {number, columns});
    Ref pairs = front.node("Concat", {row, column}, {{"axis", int64_t{1}}});
    Ref repeats = front.concat({frames, front.ints({1})});
    front.give_cast(front.node("Tile", {pairs, repeats}), positions);
  }
  if (bounds.is_valid()) {
    take_input(model, bounds);
    Ref frame_numbers = range(front.node("Add", {frames, front.ints({1})}));
    front.give_cast(front.node("Mul", {frame_numbers, area}), bounds);
  }
  if (window_index.is_valid() || window_bounds.is_valid()) {
    // Blocks are numbered from 1, so that the filling of windows at the edges can be told by its zeros.
    Ref window = front.ints({order.window});
    Ref count = front.node("Mul", {front.node("Mul", {block_rows, block_columns}), frames});
    Ref numbers = front.node("Add", {range(count), front.integer(1)});
    Ref blocks = front.node("Reshape", {numbers, front.concat({frames, block_rows, block_columns})});
    auto windows = [&](Ref size) {
      return front.node("Div", {front.node("Add", {size, front.ints({order.window - 1})}), window});
    };
    Ref down = windows(block_rows), across = windows(block_columns);
    Ref more_rows = front.node("Sub", {front.node("Mul", {down, window}), block_rows});
    Ref more_columns = front.node("Sub", {front.node("Mul", {across, window}), block_columns});
    Ref pads = front.concat({front.ints({0, 0, 0, 0}), more_rows, more_columns});
    Ref filled = front.node("Pad", {blocks, pads});
    Ref split = front.node("Reshape", {filled, front.concat({frames, down, window, across, window})});
    Ref ordered = front.node("Transpose", {split}, {{"perm", std::vector<int64_t>{0, 1, 3, 2, 4}}});
    Ref each = front.node("Reshape", {ordered, front.ints({-1, order.window * order.window})});
    Ref is_block = front.node("Greater", {each, front.integer(0)}, DType::kBool);
    if (window_index.is_valid()) {
      take_input(model, window_index);
      Ref all = front.node("Reshape", {each, front.ints({-1})});
      Ref kept = front.node("Compress", {all, front.node("Reshape", {is_block, front.ints({-1})}, DType::kBool)});
      front.give_cast(front.node("Sub", {kept, front.integer(1)}), window_index);
    }
    if (window_bounds.is_valid()) {
      take_input(model, window_bounds);
      Ref lengths =
          front.node("ReduceSum", {front.cast(is_block, DType::kI64), front.ints({1})}, {{"keepdims", int64_t{0}}});
      Ref ends = front.node("CumSum", {lengths, front.integer(0)});
      Ref patches = front.node("Mul", {ends, front.integer(order.merge_size * order.merge_size)});
      front.give_cast(front.concat({front.ints({0}), patches}), window_bounds);
    }
  }
  front.insert();
  return {};
}

}  // namespace argosy::onnx
