#include <algorithm>
#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

using Exprs = std::vector<SymExpr>;

/// The shape that several broadcast to.
Exprs broadcast(const NodeTranslator& e, const std::vector<Exprs>& shapes) {
  size_t rank = 0;
  for (const Exprs& shape : shapes) rank = std::max(rank, shape.size());
  Exprs result(rank, e.number(1));
  for (const Exprs& shape : shapes) {
    for (size_t i = 0; i < shape.size(); ++i) {
      SymExpr& target = result[rank - shape.size() + i];
      if (target.as_integer() == 1) target = shape[i];
    }
  }
  return result;
}

/// Index tensors by the dims that they index, masks taken apart into one for each of their dims.
struct Indices {
  std::vector<int64_t> dims;  // increasing
  Refs values;                // i64
  std::vector<Exprs> shapes;
  bool is_adjacent() const { return dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size()); }
};

/// Where a mask is true: one i64 vector for each of its dims.
void add_mask(const NodeTranslator& e, Ref mask, Shape shape, int64_t first, Indices& indices) {
  Ref places = e.node("NonZero", {mask});
  // As many as the mask has true elements: the size of the op's own result, where the trace named it.
  Ref count = e.node("Shape", {places}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  std::string name = "mask_" + std::to_string(e.node_id().index) + "_" + std::to_string(first);
  SymExpr size = e.symbols().symbol(name);
  e.define_size(size, count);
  for (size_t i = 0; i < shape.size(); ++i) {
    indices.dims.push_back(first + static_cast<int64_t>(i));
    indices.values.push_back(
        e.node("Gather", {places, e.builder().integer(static_cast<int64_t>(i))}, {{"axis", int64_t{0}}}));
    indices.shapes.push_back({size});
  }
}

Indices indices_of(const NodeTranslator& e) {
  Indices indices;
  int64_t dim = 0;
  for (ValueId id : e.tensor_ids("indices")) {
    if (!id.is_valid()) {
      ++dim;
      continue;
    }
    const TensorType& type = e.type_of(id);
    if (type.dtype == DType::kBool || type.dtype == DType::kU8) {
      add_mask(e, e.cast(e.tensor(id), DType::kBool), type.shape, dim, indices);
      dim += static_cast<int64_t>(type.shape.size());
      continue;
    }
    indices.dims.push_back(dim++);
    indices.values.push_back(e.cast(e.tensor(id), DType::kI64));
    indices.shapes.push_back(type.shape);
  }
  return indices;
}

/// The indexed dims first, the others behind, in order.
Ints indexed_first(const Indices& indices, int64_t rank) {
  Ints order(indices.dims.begin(), indices.dims.end());
  for (int64_t i = 0; i < rank; ++i) {
    if (std::ranges::find(indices.dims, i) == indices.dims.end()) order.push_back(i);
  }
  return order;
}

Ints inverse(const Ints& order) {
  Ints result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

/// All index tensors as one, [broadcast..., number of them], as GatherND and ScatterND take it.
Ref joined(const NodeTranslator& e, const Indices& indices, const Exprs& shape) {
  Refs parts;
  for (size_t i = 0; i < indices.values.size(); ++i) {
    Ref wide = e.expand(indices.values[i], indices.shapes[i], shape);
    parts.push_back(e.unsqueeze(wide, {static_cast<int64_t>(shape.size())}));
  }
  return e.concat(std::move(parts), static_cast<int64_t>(shape.size()));
}

/// From [broadcast..., others...] to where torch puts the broadcast dims: in place of adjacent ones, else in front.
Ints result_order(const Indices& indices, int64_t broadcast_rank, int64_t other_rank) {
  Ints order(static_cast<size_t>(broadcast_rank + other_rank));
  std::iota(order.begin(), order.end(), 0);
  if (indices.is_adjacent()) {
    std::rotate(order.begin(), order.begin() + broadcast_rank, order.begin() + broadcast_rank + indices.dims.front());
  }
  return order;
}

// index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
void emit_index(const NodeTranslator& e, const Translation&) {
  Indices indices = indices_of(e);
  if (indices.dims.empty()) return e.yield(e.tensor("self"));
  if (indices.dims.size() == 1) {
    return e.yield(e.node("Gather", {e.tensor("self"), indices.values.front()}, {{"axis", indices.dims.front()}}));
  }
  int64_t rank = e.rank("self");
  Exprs shape = broadcast(e, indices.shapes);
  Ref moved = e.transpose(e.tensor("self"), indexed_first(indices, rank));
  Ref gathered = e.node("GatherND", {moved, joined(e, indices, shape)});
  int64_t others = rank - static_cast<int64_t>(indices.dims.size());
  e.yield(e.transpose(gathered, result_order(indices, static_cast<int64_t>(shape.size()), others)));
}

/// Whether a tensor has one element, as far as is known.
bool is_single(Shape shape) {
  return std::ranges::all_of(shape, [](SymExpr size) { return size.is_valid() && size.as_integer() == 1; });
}

// index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
void emit_index_put(const NodeTranslator& e, const Translation&) {
  int64_t rank = e.rank("self");
  bool accumulates = e.flag("accumulate");
  std::vector<ValueId> given = e.tensor_ids("indices");
  // One value for all places of a mask needs no places.
  if (given.size() == 1 && e.type_of(given.front()).dtype == DType::kBool && is_single(e.shape("values")) &&
      !accumulates) {
    Ints tail;
    for (int64_t i = static_cast<int64_t>(e.type_of(given.front()).shape.size()); i < rank; ++i) tail.push_back(i);
    Ref value = e.reshape(e.tensor("values"), e.shape("values"), {});
    return e.yield(e.node("Where", {e.unsqueeze(e.tensor(given.front()), tail), value, e.tensor("self")}));
  }
  Indices indices = indices_of(e);
  Exprs shape = broadcast(e, indices.shapes);
  Ints order = indexed_first(indices, rank);
  int64_t others = rank - static_cast<int64_t>(indices.dims.size());
  // Values come in the order of what index() would give.
  Ints placed = result_order(indices, static_cast<int64_t>(shape.size()), others);
  Exprs updates(shape);
  for (size_t i = indices.dims.size(); i < order.size(); ++i) {
    updates.push_back(e.shape("self")[static_cast<size_t>(order[i])]);
  }
  Exprs selected;
  for (int64_t i : placed) selected.push_back(updates[static_cast<size_t>(i)]);
  Ref values = e.tensor("values");
  values = e.transpose(e.expand(values, e.shape("values"), selected), inverse(placed));
  Attributes attributes;
  if (accumulates) attributes.push_back({"reduction", std::string("add")});
  Ref written = e.node("ScatterND", {e.transpose(e.tensor("self"), order), joined(e, indices, shape), values},
                       std::move(attributes));
  e.yield(e.transpose(written, inverse(order)));
}

// index_select(Tensor self, int dim, Tensor index) -> Tensor
void emit_index_select(const NodeTranslator& e, const Translation&) {
  if (e.rank("self") == 0) return e.yield(e.tensor("self"));
  Ref index = e.tensor("index");
  if (e.rank("index") == 0) index = e.unsqueeze(index, {0});
  e.yield(e.node("Gather", {e.tensor("self"), index}, {{"axis", e.dim("dim", e.rank("self"))}}));
}

// gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
void emit_gather_along(const NodeTranslator& e, const Translation&) {
  if (e.rank("self") == 0) return e.yield(e.expand(e.tensor("self"), {}, e.result().shape));
  e.yield(e.node("GatherElements", {e.tensor("self"), e.cast(e.tensor("index"), DType::kI64)},
                 {{"axis", e.dim("dim", e.rank("self"))}}));
}

/// The part of `source` that an index of that shape reads.
Ref cut_to(const NodeTranslator& e, Ref source, Shape from, Shape to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[i]) source = e.slice(source, static_cast<int64_t>(i), e.ints({0}), e.size(to[i]));
  }
  return source;
}

/// What ONNX calls a reduction of torch.
std::string reduction_of(const NodeTranslator& e) {
  std::string name = e.text("reduce");
  if (name == "prod") return "mul";
  if (name == "amax") return "max";
  if (name == "amin") return "min";
  e.decline("a " + name + " of integers");
}

// scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
// scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
// scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor
void emit_scatter(const NodeTranslator& e, const Translation& row) {
  if (e.rank("self") == 0) e.decline("a scatter into a tensor without dims");
  DType dtype = e.type("self").dtype;
  Shape places = e.shape("index");
  Ref updates = e.has("src") ? cut_to(e, e.tensor("src"), e.shape("src"), places)
                             : e.expand(e.operand("value", dtype), {}, places);
  std::string reduction = row.onnx_op.empty() ? reduction_of(e) : std::string(row.onnx_op);
  e.yield(e.node("ScatterElements", {e.tensor("self"), e.tensor("index"), updates},
                 {{"axis", e.dim("dim", e.rank("self"))}, {"reduction", reduction}}));
}

// masked_select(Tensor self, Tensor mask) -> Tensor
void emit_masked_select(const NodeTranslator& e, const Translation&) {
  Exprs shape = broadcast(e, {Exprs(e.shape("self").begin(), e.shape("self").end()),
                              Exprs(e.shape("mask").begin(), e.shape("mask").end())});
  Ref self = e.expand(e.tensor("self"), e.shape("self"), shape),
      mask = e.expand(e.tensor("mask"), e.shape("mask"), shape);
  e.yield(e.node("Compress", {self, e.node("Reshape", {mask, e.ints({-1})})}));
}

// nonzero(Tensor self) -> Tensor
void emit_nonzero(const NodeTranslator& e, const Translation&) {
  e.yield(e.node("Transpose", {e.node("NonZero", {e.tensor("self")})}, {{"perm", Ints{1, 0}}}));
}

// nonzero_numpy(Tensor self) -> Tensor[]; where.default(Tensor condition) -> Tensor[]
void emit_nonzero_parts(const NodeTranslator& e, const Translation& row) {
  Ref places = e.node("NonZero", {e.tensor(row.op == "aten.where.default" ? "condition" : "self")});
  Refs parts;
  for (size_t i = 0; i < e.result_count(); ++i) {
    parts.push_back(e.node("Gather", {places, e.builder().integer(static_cast<int64_t>(i))}, {{"axis", int64_t{0}}}));
  }
  e.yield(parts);
}

constexpr Translation kIndexing[] = {
    {"aten.index.Tensor", emit_index},
    {"aten.index_put.default", emit_index_put},
    {"aten.index_select.default", emit_index_select},
    {"aten.gather.default", emit_gather_along},
    {"aten.scatter.src", emit_scatter, "none"},
    {"aten.scatter.value", emit_scatter, "none"},
    {"aten.scatter_add.default", emit_scatter, "add"},
    {"aten.scatter_reduce.two", emit_scatter, {}, "ScatterElements"},
    {"aten.masked_select.default", emit_masked_select},
    {"aten.nonzero.default", emit_nonzero},
    {"aten.nonzero_numpy.default",
     emit_nonzero_parts,
     {},
     "NonZero gives a row for each dim, which need not be transposed"},
    {"aten.where.default", emit_nonzero_parts, {}, "NonZero gives a row for each dim, which need not be transposed"},
};

}  // namespace

std::span<const Translation> indexing_translations() { return kIndexing; }

}  // namespace argosy::onnx
