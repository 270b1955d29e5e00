#include "backends/onnx/edit_media.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/onnx/edit.h"
#include "backends/onnx/edit_nodes.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

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
  NodeList front(model);
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
  NodeList front(model);
  front.give("Reshape", {outer, front.ints({-1, columns})}, inner);
  front.insert();
  return {};
}

namespace {

/// What is computed from the sizes of one picture.
class Patches {
 public:
  Patches(Model& model, Ref grid, const PatchOrder& order) : front_(model), order_(order) {
    Ref flat = front_.node("Reshape", {grid, front_.ints({3})});
    auto part = [&](int64_t i) { return front_.node("Slice", {flat, front_.ints({i}), front_.ints({i + 1})}); };
    frames_ = part(0);
    rows_ = part(1);
    columns_ = part(2);
    area_ = front_.node("Mul", {rows_, columns_});
    merge_ = front_.ints({order.merge_size});
    block_rows_ = front_.node("Div", {rows_, merge_});
    block_columns_ = front_.node("Div", {columns_, merge_});
  }

  /// Row and column of every patch, each [patches, 1].
  void number_patches() {
    // Patches are numbered row by row, then put into the order of blocks.
    Ref blocks = front_.node("Reshape", {range(area_), front_.concat({block_rows_, merge_, block_columns_, merge_})});
    Ref ordered = front_.node("Transpose", {blocks}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    Ref frame = front_.node("Reshape", {ordered, front_.ints({-1, 1})});
    Ref number = front_.node("Tile", {frame, front_.concat({frames_, front_.ints({1})})});
    row_ = front_.node("Div", {number, columns_});
    column_ = front_.node("Mod", {number, columns_});
  }
  void give_positions(Ref result) {
    front_.give_cast(front_.node("Concat", {row_, column_}, {{"axis", int64_t{1}}}), result);
  }

  void give_bounds(Ref result) {
    Ref frame_numbers = range(front_.node("Add", {frames_, front_.ints({1})}));
    front_.give_cast(front_.node("Mul", {frame_numbers, area_}), result);
  }

  /// Either may be invalid.
  void give_windows(Ref index, Ref bounds) {
    // Blocks are numbered from 1, so that the filling of windows at the edges can be told by its zeros.
    Ref window = front_.ints({order_.window});
    Ref count = front_.node("Mul", {front_.node("Mul", {block_rows_, block_columns_}), frames_});
    Ref numbers = front_.node("Add", {range(count), front_.integer(1)});
    Ref blocks = front_.node("Reshape", {numbers, front_.concat({frames_, block_rows_, block_columns_})});
    auto windows = [&](Ref size) {
      return front_.node("Div", {front_.node("Add", {size, front_.ints({order_.window - 1})}), window});
    };
    Ref down = windows(block_rows_), across = windows(block_columns_);
    Ref more_rows = front_.node("Sub", {front_.node("Mul", {down, window}), block_rows_});
    Ref more_columns = front_.node("Sub", {front_.node("Mul", {across, window}), block_columns_});
    Ref pads = front_.concat({front_.ints({0, 0, 0, 0}), more_rows, more_columns});
    Ref filled = front_.node("Pad", {blocks, pads});
    Ref split = front_.node("Reshape", {filled, front_.concat({frames_, down, window, across, window})});
    Ref ordered = front_.node("Transpose", {split}, {{"perm", std::vector<int64_t>{0, 1, 3, 2, 4}}});
    Ref each = front_.node("Reshape", {ordered, front_.ints({-1, order_.window * order_.window})});
    Ref is_block = front_.node("Greater", {each, front_.integer(0)}, DType::kBool);
    if (index.is_valid()) {
      Ref all = front_.node("Reshape", {each, front_.ints({-1})});
      Ref kept = front_.node("Compress", {all, front_.node("Reshape", {is_block, front_.ints({-1})}, DType::kBool)});
      front_.give_cast(front_.node("Sub", {kept, front_.integer(1)}), index);
    }
    if (bounds.is_valid()) {
      Ref lengths =
          front_.node("ReduceSum", {front_.cast(is_block, DType::kI64), front_.ints({1})}, {{"keepdims", int64_t{0}}});
      Ref ends = front_.node("CumSum", {lengths, front_.integer(0)});
      Ref patches = front_.node("Mul", {ends, front_.integer(order_.merge_size * order_.merge_size)});
      front_.give_cast(front_.concat({front_.ints({0}), patches}), bounds);
    }
  }

  /// The four neighbours of a patch in the table of positions, and what each counts. Either may be invalid.
  void give_interpolation(Ref indices, Ref weights) {
    Neighbours down = neighbours(row_, rows_), across = neighbours(column_, columns_);
    std::vector<Ref> places, parts;
    Ref side = front_.integer(order_.side);
    for (int i : {0, 1}) {
      Ref begin = front_.node("Mul", {down.place[i], side});
      for (int j : {0, 1}) {
        places.push_back(front_.node("Add", {begin, across.place[j]}));
        parts.push_back(front_.node("Mul", {down.weight[i], across.weight[j]}, DType::kF32));
      }
    }
    auto beside = [&](std::vector<Ref> columns, DType dtype) {
      return front_.node("Concat", std::move(columns), dtype, {{"axis", int64_t{1}}});
    };
    if (indices.is_valid()) front_.give_cast(beside(std::move(places), DType::kI64), indices);
    if (weights.is_valid()) front_.give_cast(beside(std::move(parts), DType::kF32), weights);
  }

  void insert() { front_.insert(); }

 private:
  struct Neighbours {
    Ref place[2], weight[2];
  };

  Neighbours neighbours(Ref position, Ref size) {
    auto number = [&](Ref value) { return front_.cast(value, DType::kF32); };
    Ref last = front_.integer(order_.side - 1);
    Ref steps = front_.node("Max", {front_.node("Sub", {size, front_.ints({1})}), front_.ints({1})});
    Ref scaled = front_.node("Mul", {number(position), number(last)}, DType::kF32);
    Ref source = front_.node("Div", {scaled, number(steps)}, DType::kF32);
    Ref floor = front_.node("Floor", {source}, DType::kF32);
    Ref rest = front_.node("Sub", {source, floor}, DType::kF32);
    Ref place = front_.cast(floor, DType::kI64);
    Ref next = front_.node("Min", {front_.node("Add", {place, front_.integer(1)}), last});
    Ref other = front_.node("Sub", {number(front_.integer(1)), rest}, DType::kF32);
    return {{place, next}, {other, rest}};
  }
  Ref range(Ref end) {
    Ref scalar = front_.node("Squeeze", {end, front_.ints({0})});
    return front_.node("Range", {front_.integer(0), scalar, front_.integer(1)});
  }

  NodeList front_;
  PatchOrder order_;
  Ref frames_, rows_, columns_, area_, merge_, block_rows_, block_columns_;  // each with one dim
  Ref row_, column_;
};

}  // namespace

Status compute_patch_positions(Model& model, std::string_view grid, const PatchOrder& order) {
  if (find_input(model, grid).is_valid())
    return fail(ErrorCode::kInvalidInput, format("the graph has an input {} already", quoted(grid)));
  auto find = [&](std::string_view name) { return find_input(model, name); };
  Ref positions = find("position_ids"), bounds = find("cu_seqlens");
  Ref window_index = find("window_index"), window_bounds = find("cu_window_seqlens");
  Ref indices = find("interpolation_indices"), weights = find("interpolation_weights");
  bool has_windows = window_index.is_valid() || window_bounds.is_valid();
  bool interpolates = indices.is_valid() || weights.is_valid();
  if (has_windows && order.window <= 0)
    return fail(ErrorCode::kInvalidInput, "the graph has windows of patches, whose size is not known");
  if (interpolates && order.side <= 0)
    return fail(ErrorCode::kInvalidInput, "the graph interpolates positions, of which the number is not known");
  Patches patches(model, add_input(model, grid, {int64_t{1}, int64_t{3}}), order);
  for (Ref input : {positions, bounds, window_index, window_bounds, indices, weights}) {
    if (input.is_valid()) take_input(model, input);
  }
  if (positions.is_valid() || interpolates) patches.number_patches();
  if (positions.is_valid()) patches.give_positions(positions);
  if (bounds.is_valid()) patches.give_bounds(bounds);
  if (has_windows) patches.give_windows(window_index, window_bounds);
  if (interpolates) patches.give_interpolation(indices, weights);
  patches.insert();
  return {};
}

}  // namespace argosy::onnx
