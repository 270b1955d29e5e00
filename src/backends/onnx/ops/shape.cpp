#include <algorithm>
#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// view(Tensor(a) self, SymInt[] size) -> Tensor(a), and everything else that keeps the elements and their order
void emit_reshape(const Emitter& e, const Translation&) {
  e.yield(e.reshape(e.tensor("self"), e.shape("self"), e.result().shape));
}

// expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
void emit_expand(const Emitter& e, const Translation&) {
  e.yield(e.expand(e.tensor("self"), e.shape("self"), e.result().shape));
}

// permute(Tensor(a) self, int[] dims) -> Tensor(a)
void emit_permute(const Emitter& e, const Translation&) {
  e.yield(e.transpose(e.tensor("self"), e.dims("dims", e.rank("self"))));
}

// squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a), all of size 1
void emit_squeeze(const Emitter& e, const Translation&) {
  e.yield(e.squeeze(e.tensor("self"), e.dims("dim", e.rank("self"))));
}

// unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
void emit_unsqueeze(const Emitter& e, const Translation&) {
  e.yield(e.unsqueeze(e.tensor("self"), {e.dim("dim", e.rank("self") + 1)}));
}

// cat(Tensor[] tensors, int dim=0) -> Tensor
void emit_cat(const Emitter& e, const Translation&) {
  int64_t rank = static_cast<int64_t>(e.result().shape.size());
  int64_t axis = e.dim("dim", rank);
  Refs parts;
  for (ValueId id : e.tensor_ids("tensors")) {
    // torch passes over empty tensors of one dim, whatever the others are.
    const TensorType& type = e.type_of(id);
    if (type.shape.size() == 1 && rank != 1) continue;
    if (type.shape[static_cast<size_t>(axis)].as_integer() == 0) continue;
    parts.push_back(e.cast(e.tensor(id), e.result().dtype));
  }
  if (parts.empty()) parts.push_back(e.tensors("tensors").front());
  e.yield(e.concat(std::move(parts), axis));
}

/// One bound of a slice: i64[1]. None is the end that it stands for.
Ref bound(const Emitter& e, std::string_view name, int64_t otherwise) {
  return e.has(name) ? e.size(name) : e.ints({otherwise});
}

// slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)
// Both clamp bounds and count negative ones from the end.
void emit_slice(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  e.yield(e.slice(e.tensor("self"), axis, bound(e, "start", 0), bound(e, "end", INT64_MAX), e.integer("step")));
}

// select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
void emit_select(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  auto index = e.constant_integer("index");
  Ref at = index ? e.builder().integer(*index) : e.without_dims(e.size("index"));
  e.yield(e.node("Gather", {e.tensor("self"), at}, {{"axis", axis}}));
}

// split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
void emit_split(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  if (e.result_count() == 1) return e.yield(e.tensor("self"));
  e.yield(e.builder().node("Split", {e.tensor("self"), e.sizes("split_sizes")}, e.result_count(), {{"axis", axis}}));
}

// to.dtype(Tensor(a) self, ScalarType dtype, …) -> Tensor(a)
void emit_to(const Emitter& e, const Translation&) { e.yield(e.tensor("self")); }  // yield() casts

// repeat(Tensor self, SymInt[] repeats) -> Tensor
void emit_repeat(const Emitter& e, const Translation&) {
  Ints lead(e.result().shape.size() - e.shape("self").size());
  std::iota(lead.begin(), lead.end(), 0);
  e.yield(e.node("Tile", {e.unsqueeze(e.tensor("self"), lead), e.sizes("repeats")}));
}

// flip(Tensor self, int[] dims) -> Tensor
void emit_flip(const Emitter& e, const Translation&) {
  Ints dims = e.dims("dims", e.rank("self"));
  if (dims.empty() || e.rank("self") == 0) return e.yield(e.tensor("self"));
  size_t count = dims.size();
  e.yield(e.node("Slice", {e.tensor("self"), e.ints(Ints(count, -1)), e.ints(Ints(count, INT64_MIN)), e.ints(dims),
                           e.ints(Ints(count, -1))}));
}

/// The last `shift` elements of a dim (or, if negative, all but the first -shift) before the others.
Ref rolled(const Emitter& e, Ref value, int64_t axis, int64_t shift) {
  if (shift == 0) return value;
  Ref start = e.ints({0}), middle = e.ints({-shift}), end = e.ints({INT64_MAX});
  return e.concat({e.slice(value, axis, middle, end), e.slice(value, axis, start, middle)}, axis);
}

// roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor
void emit_roll(const Emitter& e, const Translation&) {
  Ints shifts = e.integers("shifts"), dims = e.dims("dims", e.rank("self"));
  Ref value = e.tensor("self");
  auto reduced = [](int64_t shift, SymExpr size) {
    auto number = size.is_valid() ? size.as_integer() : std::nullopt;
    return number && *number > 0 ? shift % *number : shift;
  };
  if (dims.empty()) {
    Ref flat = e.node("Reshape", {value, e.ints({-1})});
    SymExpr count = e.elements(e.shape("self"));
    flat = rolled(e, flat, 0, reduced(shifts.front(), count));
    std::vector<SymExpr> from = {count};
    return e.yield(e.reshape(flat, from, e.result().shape));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    value = rolled(e, value, dims[i], reduced(shifts[i], e.shape("self")[static_cast<size_t>(dims[i])]));
  }
  e.yield(value);
}

// tril(Tensor self, SymInt diagonal=0) -> Tensor, triu alike
void emit_triangle(const Emitter& e, const Translation& row) {
  Ref diagonal = e.without_dims(e.size("diagonal"));
  e.yield(e.node("Trilu", {e.tensor("self"), diagonal}, {{"upper", int64_t{row.op == "aten.triu.default" ? 1 : 0}}}));
}

// unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a): windows of a dim, their elements in a last
// dim
void emit_unfold(const Emitter& e, const Translation&) {
  int64_t rank = e.rank("self"), axis = e.dim("dimension", rank);
  if (rank == 0) return e.yield(e.unsqueeze(e.tensor("self"), {0}));
  Ref starts = e.mul(e.count_up(e.result().shape[static_cast<size_t>(axis)]), e.builder().integer(e.integer("step")));
  Ref offsets = e.count_up(e.number(e.integer("size")));
  Ref indices = e.add(e.unsqueeze(starts, {1}), offsets);
  Ref windows = e.node("Gather", {e.tensor("self"), indices}, {{"axis", axis}});
  Ints order;
  for (int64_t i = 0; i <= rank; ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  e.yield(e.transpose(windows, order));
}

/// ONNX's pads, all begins before all ends, of torch's, pairs from the last dim on.
Ref pads_of(const Emitter& e, std::string_view name, int64_t rank) {
  const IntList& given = *e.argument(name).get_if<IntList>();
  Refs begins, ends;
  size_t padded = given.size() / 2;
  bool is_constant =
      std::ranges::all_of(given, [](const IntItem& item) { return std::holds_alternative<int64_t>(item); });
  if (is_constant) {
    Ints pads(static_cast<size_t>(rank) * 2, 0);
    for (size_t i = 0; i < padded; ++i) {
      size_t dim = static_cast<size_t>(rank) - 1 - i;
      pads[dim] = std::get<int64_t>(given[2 * i]);
      pads[static_cast<size_t>(rank) + dim] = std::get<int64_t>(given[2 * i + 1]);
    }
    return e.ints(pads);
  }
  for (size_t dim = 0; dim < static_cast<size_t>(rank); ++dim) {
    size_t i = static_cast<size_t>(rank) - 1 - dim;
    begins.push_back(i < padded ? e.size_item(given[2 * i]) : e.ints({0}));
    ends.push_back(i < padded ? e.size_item(given[2 * i + 1]) : e.ints({0}));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  return e.concat(std::move(begins), 0);
}

// constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor
void emit_constant_pad(const Emitter& e, const Translation&) {
  Ref pads = pads_of(e, "pad", e.rank("self"));
  e.yield(e.node("Pad", {e.tensor("self"), pads, e.scalar("value", e.result().dtype)}));
}

// pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor, of modes other than constant
void emit_pad(const Emitter& e, const Translation& row) {
  std::string mode = row.onnx_op.empty() ? e.text("mode") : std::string(row.onnx_op);
  std::string_view name = row.onnx_op.empty() ? "pad" : "padding";
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  if (mode == "wrap" && e.opset() < 19) e.decline("circular padding needs opset 19", "export with --opset 19 or more");
  e.yield(e.node("Pad", {e.tensor("self"), pads_of(e, name, e.rank("self"))}, {{"mode", mode}}));
}

// diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor
void emit_diff(const Emitter& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  Refs parts;
  for (std::string_view name : {"prepend", "self", "append"}) {
    if (e.has(name)) parts.push_back(e.tensor(name));
  }
  Ref value = e.concat(std::move(parts), axis);
  bool is_bool = e.type("self").dtype == DType::kBool;
  for (int64_t i = 0; i < e.integer("n"); ++i) {
    Ref later = e.slice(value, axis, e.ints({1}), e.ints({INT64_MAX}));
    Ref earlier = e.slice(value, axis, e.ints({0}), e.ints({-1}));
    value = is_bool ? e.node("Xor", {later, earlier}) : e.sub(later, earlier);
  }
  e.yield(value);
}

// pixel_shuffle(Tensor self, int upscale_factor) -> Tensor: [..., c*r*r, h, w] to [..., c, h*r, w*r]
void emit_pixel_shuffle(const Emitter& e, const Translation&) {
  if (e.rank("self") != 4) e.decline("pixel shuffles of other than 4 dims");
  e.yield(e.node("DepthToSpace", {e.tensor("self")},
                 {{"blocksize", e.integer("upscale_factor")}, {"mode", std::string("CRD")}}));
}

// pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
void emit_pixel_unshuffle(const Emitter& e, const Translation&) {
  if (e.rank("self") != 4) e.decline("pixel shuffles of other than 4 dims");
  SymContext& symbols = e.symbols();
  SymExpr factor = e.number(e.integer("downscale_factor"));
  Shape shape = e.shape("self");
  std::vector<SymExpr> split = {
      shape[0], shape[1], symbols.floor_div(shape[2], factor), factor, symbols.floor_div(shape[3], factor), factor};
  std::vector<SymExpr> moved = {split[0], split[1], factor, factor, split[2], split[4]};
  Ref value = e.transpose(e.reshape(e.tensor("self"), shape, split), {0, 1, 3, 5, 2, 4});
  e.yield(e.reshape(value, moved, e.result().shape));
}

// diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
void emit_diagonal(const Emitter& e, const Translation&) {
  int64_t rank = e.rank("self"), first = e.dim("dim1", rank), second = e.dim("dim2", rank),
          offset = e.integer("offset");
  Ints order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != first && i != second) order.push_back(i);
  }
  order.push_back(first);
  order.push_back(second);
  Ref value = e.transpose(e.tensor("self"), order);
  Ref places = e.count_up(e.result().shape.back());
  Ref rows = offset < 0 ? e.sub(places, e.builder().integer(offset)) : places;
  Ref columns = offset > 0 ? e.add(places, e.builder().integer(offset)) : places;
  // [..., row, column] flattened over both: row * width + column
  SymExpr height = e.shape("self")[static_cast<size_t>(first)], width = e.shape("self")[static_cast<size_t>(second)];
  std::vector<SymExpr> matrix, flat;
  for (int64_t i : order) matrix.push_back(e.shape("self")[static_cast<size_t>(i)]);
  flat.assign(matrix.begin(), matrix.end() - 2);
  flat.push_back(e.symbols().mul(height, width));
  Ref index = e.add(e.mul(rows, e.without_dims(e.size(width))), columns);
  e.yield(e.node("Gather", {e.reshape(value, matrix, flat), index}, {{"axis", rank - 2}}));
}

constexpr Translation kShape[] = {
    {"aten.reshape.default", emit_reshape},
    {"aten.expand.default", emit_expand},
    {"aten.permute.default", emit_permute},
    {"aten.squeeze.dims", emit_squeeze},
    {"aten.unsqueeze.default", emit_unsqueeze},
    {"aten.cat.default", emit_cat},
    {"aten.slice.Tensor", emit_slice},
    {"aten.select.int", emit_select},
    {"aten.split_with_sizes.default", emit_split},
    {"aten.to.dtype", emit_to},
    {"aten.repeat.default", emit_repeat},
    {"aten.flip.default", emit_flip},
    {"aten.roll.default", emit_roll},
    {"aten.tril.default", emit_triangle},
    {"aten.triu.default", emit_triangle},
    {"aten.unfold.default", emit_unfold},
    {"aten.constant_pad_nd.default", emit_constant_pad},
    {"aten.pad.default", emit_pad},
    {"aten.reflection_pad1d.default", emit_pad, "reflect"},
    {"aten.reflection_pad2d.default", emit_pad, "reflect"},
    {"aten.replication_pad1d.default", emit_pad, "edge"},
    {"aten.replication_pad2d.default", emit_pad, "edge"},
    {"aten.pixel_shuffle.default", emit_pixel_shuffle},
    {"aten.pixel_unshuffle.default", emit_pixel_unshuffle},
    {"aten.diagonal.default", emit_diagonal},
    {"aten.diff.default", emit_diff},
};

}  // namespace

std::span<const Translation> shape_translations() { return kShape; }

}  // namespace argosy::onnx
