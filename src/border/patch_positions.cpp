#include <algorithm>
#include <optional>

#include "base/text.h"
#include "border/edits.h"
#include "passes/aten_schemas.h"

namespace argosy {
namespace {

/// What is computed from the sizes of one picture: inputs position_ids [patches, 2], cu_seqlens, window_index,
/// cu_window_seqlens and interpolation_*, as far as a graph has them. Patches are ordered in blocks, and these in
/// windows.
class Patches {
 public:
  Patches(Border& border, const ComputePatchPositions& edit)
      : border_(border), f_(border.top()), edit_(edit), merge_(f_.integer(edit.merge_size)) {
    ValueId grid = border.add_input(edit.grid, DType::kI64, {f_.one(), f_.integer(3)});
    ValueId flat = f_.reshape(grid, {f_.integer(3)});
    for (int i : {0, 1, 2}) {
      constexpr const char* kNames[] = {"frames", "rows", "columns"};
      grid_[i] = f_.select(flat, 0, i);
      sizes_[i] = border.new_size(kNames[i]);
      f_.know_size(sizes_[i], f_.value(aten::kItem, {{"self", grid_[i]}}, SymType{SymType::Kind::kInt, sizes_[i]}));
    }
  }

  void give_positions() {
    if (border_.has_input("position_ids")) give("position_ids", f_.cat({row(), column()}, 1));
  }

  void give_bounds() {
    if (!border_.has_input("cu_seqlens")) return;
    ValueId numbers = f_.arange(symbols().add(frames(), f_.one()), DType::kI64, {});
    give("cu_seqlens", f_.mul(numbers, f_.mul(grid_[1], grid_[2])));
  }

  void give_windows() {
    if (!border_.has_input("window_index") && !border_.has_input("cu_window_seqlens")) return;
    if (edit_.window <= 0) Border::refuse("the graph has windows of patches, whose size is not known");
    // Blocks are numbered from 1, so that zeros are the padding of windows at the edges.
    SymExpr window = f_.integer(edit_.window), down = windows(block_rows()), across = windows(block_columns());
    Sizes shape = {frames(), block_rows(), block_columns()};
    SymExpr count = symbols().mul(shape);
    ValueId blocks = f_.reshape(f_.add_integer(f_.arange(count, DType::kI64, {}), 1), shape);
    Sizes filled = {frames(), symbols().mul(down, window), symbols().mul(across, window)};
    IntList pads = {int64_t{0}, f_.item(symbols().sub(filled[2], shape[2]), {}), int64_t{0},
                    f_.item(symbols().sub(filled[1], shape[1]), {})};
    ValueId padded = f_.node(aten::kConstantPadNd, {{"self", blocks}, {"pad", pads}}, DType::kI64, filled);
    ValueId ordered = f_.permute(f_.reshape(padded, {frames(), down, window, across, window}), {0, 1, 3, 2, 4});
    SymExpr all = symbols().mul(Sizes{frames(), down, across}), area = f_.integer(edit_.window * edit_.window);
    ValueId each = f_.reshape(ordered, {symbols().mul(all, area)});
    ValueId is_block = f_.compare("gt", each, int64_t{0});
    if (border_.has_input("window_index")) {
      ValueId kept = f_.node(aten::kMaskedSelect, {{"self", each}, {"mask", is_block}}, DType::kI64, {count});
      give("window_index", f_.add_integer(kept, -1));
    }
    if (border_.has_input("cu_window_seqlens")) {
      ValueId lengths = f_.sum(f_.cast(f_.reshape(is_block, {all, area}), DType::kI64), {1}, false);
      ValueId ends = f_.node(aten::kCumsum, {{"self", lengths}, {"dim", int64_t{0}}}, DType::kI64, {all});
      ValueId zero = f_.full({f_.one()}, int64_t{0}, DType::kI64, {});
      give("cu_window_seqlens", f_.cat({zero, f_.mul_integer(ends, edit_.merge_size * edit_.merge_size)}, 0));
    }
  }

  /// The four neighbours of a patch in the table of positions, and their weights.
  void give_interpolation() {
    constexpr std::string_view kIndices = "interpolation_indices", kWeights = "interpolation_weights";
    if (!border_.has_input(kIndices) && !border_.has_input(kWeights)) return;
    if (edit_.side <= 0) Border::refuse("the graph interpolates positions, of which the number is not known");
    Neighbours down = neighbours(row(), grid_[1]), across = neighbours(column(), grid_[2]);
    std::vector<ValueId> places, parts;
    for (int i : {0, 1}) {
      ValueId begin = f_.mul_integer(down.place[i], edit_.side);
      for (int j : {0, 1}) {
        places.push_back(f_.add(begin, across.place[j]));
        parts.push_back(f_.mul(down.weight[i], across.weight[j]));
      }
    }
    if (border_.has_input(kIndices)) give(kIndices, f_.cat(places, 1));
    if (border_.has_input(kWeights)) give(kWeights, f_.cat(parts, 1));
  }

 private:
  struct Neighbours {
    ValueId place[2], weight[2];
  };

  SymContext& symbols() { return f_.symbols(); }
  SymExpr frames() const { return sizes_[0]; }
  SymExpr rows() const { return sizes_[1]; }
  SymExpr columns() const { return sizes_[2]; }
  SymExpr block_rows() { return symbols().floor_div(rows(), merge_); }
  SymExpr block_columns() { return symbols().floor_div(columns(), merge_); }
  SymExpr windows(SymExpr blocks) {
    return symbols().floor_div(symbols().add(blocks, f_.integer(edit_.window - 1)), f_.integer(edit_.window));
  }

  void give(std::string_view name, ValueId value) {
    ValueId input = border_.take_input(name);
    border_.replace(input, f_.cast(value, border_.type(input).dtype));
  }

  /// Row and column of every patch, in their order: [patches, 1].
  ValueId row() {
    if (!row_.is_valid()) row_ = of_patches(rows(), {block_rows(), merge_, f_.one(), f_.one()});
    return row_;
  }
  ValueId column() {
    if (!column_.is_valid()) column_ = of_patches(columns(), {f_.one(), f_.one(), block_columns(), merge_});
    return column_;
  }
  ValueId of_patches(SymExpr count, Sizes shape) {
    ValueId each = f_.reshape(f_.arange(count, DType::kI64, {}), std::move(shape));
    SymExpr area = symbols().mul(rows(), columns());
    ValueId picture = f_.permute(f_.expand(each, {block_rows(), merge_, block_columns(), merge_}), {0, 2, 1, 3});
    ValueId all = f_.expand(f_.reshape(picture, {f_.one(), area}), {frames(), area});
    return f_.reshape(all, {symbols().mul(frames(), area), f_.one()});
  }

  Neighbours neighbours(ValueId position, ValueId size) {
    const int64_t last = edit_.side - 1;
    auto number = [&](ValueId value) { return f_.cast(value, DType::kF32); };
    ValueId steps = f_.clamp(f_.add_integer(size, -1), 1, {});
    ValueId scaled = f_.mul(number(position), static_cast<double>(last));
    ValueId source = f_.div(scaled, number(steps));
    ValueId floor = f_.floor(source);
    ValueId rest = f_.sub(source, floor), place = f_.cast(floor, DType::kI64);
    ValueId next = f_.clamp(f_.add_integer(place, 1), {}, static_cast<double>(last));
    return {{place, next}, {f_.add(f_.neg(rest), 1.0), rest}};
  }

  Border& border_;
  AtenBuilder& f_;
  const ComputePatchPositions& edit_;
  SymExpr merge_;
  ValueId grid_[3];   // frames, rows and columns, without dims
  SymExpr sizes_[3];  // the same
  ValueId row_, column_;
};

}  // namespace

void apply(Border& border, const ComputePatchPositions& edit) {
  Patches patches(border, edit);
  patches.give_positions();
  patches.give_bounds();
  patches.give_windows();
  patches.give_interpolation();
}

}  // namespace argosy
