#include <algorithm>
#include <numeric>

#include "backends/onnx/translations.h"
#include "backends/onnx/translator.h"

namespace argosy::onnx {
namespace {

// view(Tensor(a) self, SymInt[] size) -> Tensor(a), and everything else that keeps the elements and their order
void emit_reshape(const NodeTranslator& e, const Translation&) {
  e.yield(e.reshape(e.tensor("self"), e.shape("self"), e.result().shape));
}

// expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
void emit_expand(const NodeTranslator& e, const Translation&) {
  e.yield(e.expand(e.tensor("self"), e.shape("self"), e.result().shape));
}

// permute(Tensor(a) self, int[] dims) -> Tensor(a)
void emit_permute(const NodeTranslator& e, const Translation&) {
  e.yield(e.transpose(e.tensor("self"), e.dims("dims", e.rank("self"))));
}

// squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a), all of size 1
void emit_squeeze(const NodeTranslator& e, const Translation&) {
  e.yield(e.squeeze(e.tensor("self"), e.dims("dim", e.rank("self"))));
}

// unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
void emit_unsqueeze(const NodeTranslator& e, const Translation&) {
  e.yield(e.unsqueeze(e.tensor("self"), {e.dim("dim", e.rank("self") + 1)}));
}

// cat(Tensor[] tensors, int dim=0) -> Tensor
void emit_cat(const NodeTranslator& e, const Translation&) {
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

/// One bound of a slice: i64[1]. None becomes `otherwise`.
Ref bound(const NodeTranslator& e, std::string_view name, int64_t otherwise) {
  return e.has(name) ? e.size(name) : e.ints({otherwise});
}

// slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)
// Both clamp bounds and count negative ones from the end.
void emit_slice(const NodeTranslator& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  Ref self = e.tensor("self"), start = bound(e, "start", 0), end = bound(e, "end", INT64_MAX);
  e.yield(e.slice(self, axis, start, end, e.integer("step")));
}

// select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
void emit_select(const NodeTranslator& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  auto index = e.constant_integer("index");
  Ref at = index ? e.builder().integer(*index) : e.without_dims(e.size("index"));
  e.yield(e.node("Gather", {e.tensor("self"), at}, {{"axis", axis}}));
}

// split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
void emit_split(const NodeTranslator& e, const Translation&) {
  int64_t axis = e.dim("dim", e.rank("self"));
  if (e.result_count() == 1) return e.yield(e.tensor("self"));
  e.yield(e.builder().node("Split", {e.tensor("self"), e.sizes("split_sizes")}, e.result_count(), {{"axis", axis}}));
}

// to.dtype(Tensor(a) self, ScalarType dtype, …) -> Tensor(a)
void emit_to(const NodeTranslator& e, const Translation&) { e.yield(e.tensor("self")); }  // yield() casts

// repeat(Tensor self, SymInt[] repeats) -> Tensor
void emit_repeat(const NodeTranslator& e, const Translation&) {
  Ints lead(e.result().shape.size() - e.shape("self").size());
  std::iota(lead.begin(), lead.end(), 0);
  e.yield(e.node("Tile", {e.unsqueeze(e.tensor("self"), lead), e.sizes("repeats")}));
}

// flip(Tensor self, int[] dims) -> Tensor
void emit_flip(const NodeTranslator& e, const Translation&) {
  Ints dims = e.dims("dims", e.rank("self"));
  if (dims.empty() || e.rank("self") == 0) return e.yield(e.tensor("self"));
  size_t count = dims.size();
  e.yield(e.node("Slice", {e.tensor("self"), e.ints(Ints(count, -1)), e.ints(Ints(count, INT64_MIN)), e.ints(dims),
                           e.ints(Ints(count, -1))}));
}

// tril(Tensor self, SymInt diagonal=0) -> Tensor, triu alike
void emit_triangle(const NodeTranslator& e, const Translation& row) {
  Ref diagonal = e.without_dims(e.size("diagonal"));
  e.yield(e.node("Trilu", {e.tensor("self"), diagonal}, {{"upper", int64_t{row.op == "aten.triu.default" ? 1 : 0}}}));
}

/// ONNX's pads (all begins, then all ends) from torch's (pairs, the last dim first).
Ref pads_of(const NodeTranslator& e, std::string_view name, int64_t rank) {
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

/// Whether a max pooling reads the first result.
bool is_max_pooled(const NodeTranslator& e) {
  const argosy::Graph& graph = e.translator().graph();
  return std::ranges::any_of(graph[e.result_id(0)].uses, [&](const Use& use) {
    return use.node.is_valid() &&
           e.translator().program().schemas[graph[use.node].op].name.starts_with("aten.max_pool");
  });
}

// constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor
void emit_constant_pad(const NodeTranslator& e, const Translation&) {
  Refs inputs{e.tensor("self"), pads_of(e, "pad", e.rank("self")), e.scalar("value", e.result().dtype)};
  if (is_max_pooled(e)) {
    // ONNX Runtime makes zeros around a MaxPool its own padding, which is minus infinity, unless axes are named.
    Ints axes(static_cast<size_t>(e.rank("self")));
    std::iota(axes.begin(), axes.end(), 0);
    inputs.push_back(e.ints(axes));
  }
  e.yield(e.node("Pad", std::move(inputs)));
}

// pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor, of modes other than constant
void emit_pad(const NodeTranslator& e, const Translation& row) {
  std::string mode = row.onnx_op.empty() ? e.text("mode") : std::string(row.onnx_op);
  std::string_view name = row.onnx_op.empty() ? "pad" : "padding";
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  if (mode == "wrap" && e.opset() < 19) e.decline("circular padding needs opset 19", "export with --opset 19 or more");
  e.yield(e.node("Pad", {e.tensor("self"), pads_of(e, name, e.rank("self"))}, {{"mode", mode}}));
}

// pixel_shuffle(Tensor self, int upscale_factor) -> Tensor: [..., c*r*r, h, w] to [..., c, h*r, w*r]
void emit_pixel_shuffle(const NodeTranslator& e, const Translation&) {
  if (e.rank("self") != 4) e.decline("pixel shuffles of other than 4 dims");
  e.yield(e.node("DepthToSpace", {e.tensor("self")},
                 {{"blocksize", e.integer("upscale_factor")}, {"mode", std::string("CRD")}}));
}

// after(Tensor self, Tensor other) -> Tensor: self once other is known; they have the same first dim, and no other of
// self varies
void emit_after(const NodeTranslator& e, const Translation&) {
  // A copy that waits for a size of the other. Engines cannot know that the size is the same all the time.
  Ref first = e.node("Shape", {e.tensor("other")}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  Ref sizes = e.concat({first, e.sizes(e.shape("self").subspan(1))}, 0);
  e.yield(e.node("Reshape", {e.tensor("self"), sizes}));
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
    {"aten.split_with_sizes.default", emit_split, {}, "Split"},
    {"aten.to.dtype", emit_to},
    {"aten.repeat.default", emit_repeat},
    {"aten.flip.default", emit_flip},
    {"aten.tril.default", emit_triangle},
    {"aten.triu.default", emit_triangle, {}, "Trilu"},
    {"aten.constant_pad_nd.default", emit_constant_pad, {}, "Pad"},
    {"aten.pad.default", emit_pad, {}, "Pad"},
    {"aten.reflection_pad1d.default", emit_pad, "reflect"},
    {"aten.reflection_pad2d.default", emit_pad, "reflect"},
    {"aten.replication_pad1d.default", emit_pad, "edge"},
    {"aten.replication_pad2d.default", emit_pad, "edge"},
    {"aten.pixel_shuffle.default", emit_pixel_shuffle},
    {"argosy.after.default", emit_after},
};

}  // namespace

std::span<const Translation> shape_translations() { return kShape; }

}  // namespace argosy::onnx
