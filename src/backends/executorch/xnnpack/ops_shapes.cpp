#include <algorithm>

#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using Kind = XnnpackBuilder::Kind;

// ---- shape ----

/// One size can be inferred.
bool supports_reshape(const NodeView& view) { return view.dynamic_dims(view.output()) <= 1; }

std::vector<uint32_t> target(const NodeView& view, ValueId value) {
  std::vector<uint32_t> shape;
  for (size_t i = 0; i < view.rank(value); ++i) shape.push_back(static_cast<uint32_t>(view.size(value, i).value_or(0)));
  return shape;
}

Status emit_reshape(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.row_major(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.reshape(input, output, target(view, view.output()));
  return {};
}

bool supports_permute(const NodeView& view) {
  std::optional<std::vector<int64_t>> dims = view.integers("dims");
  auto rank = static_cast<int64_t>(view.rank(*view.tensor("self")));
  return dims && std::ssize(*dims) == rank &&
         std::ranges::all_of(*dims, [&](int64_t dim) { return dim >= 0 && dim < rank; });
}

/// At first a permutation is only deferred: a product may take its operand unpermuted.
Status emit_permute(const NodeView& view, XnnpackBuilder& builder) {
  ValueId self = *view.tensor("self");
  std::vector<int64_t> dims = *view.integers("dims");
  std::vector<uint32_t> order(dims.begin(), dims.end());
  if (builder.prefers_channels_last(self)) {
    // The operand has channels last already: both permutations are composed.
    constexpr uint32_t kPlace[] = {0, 3, 1, 2};
    for (uint32_t& dim : order) dim = kPlace[dim];
    ARGOSY_TRY(XnnId from, builder.channels_last(self));
    ARGOSY_TRY(XnnId to, builder.result(view.output()));
    builder.transpose(from, to, order);
    return {};
  }
  ARGOSY_TRY(XnnId input, builder.row_major(self));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.transpose(input, output, order);
  return {};
}

// ---- parts ----

/// Where a slice along one dim begins and how many it takes; nullopt: that depends on a size that varies.
struct Part {
  uint32_t first = 0, count = 0;
};

std::optional<Part> part_of(const NodeView& view, ValueId self, size_t dim, int64_t start, int64_t end) {
  std::optional<int64_t> size = view.size(self, dim);
  if (size) {
    if (start < 0) start = std::max<int64_t>(start + *size, 0);
    if (end < 0) end += *size;
    start = std::min(start, *size);
    end = std::min(end, *size);
    if (end <= start) return std::nullopt;
    return Part{static_cast<uint32_t>(start), static_cast<uint32_t>(end - start)};
  }
  // What reaches beyond the end is cut off at run time.
  if (start < 0 || end <= start) return std::nullopt;
  int64_t most = view.symbols().range(view.type(self).shape[dim]).max;
  return Part{static_cast<uint32_t>(std::min(start, most)),
              static_cast<uint32_t>(std::min(end, most) - std::min(start, most))};
}

/// Offsets and sizes that take a part of one dim and all of the others.
void slice_dim(const NodeView& view, XnnpackBuilder& builder, ValueId self, XnnId input, XnnId output, size_t dim,
               Part part) {
  std::vector<uint32_t> offsets(view.rank(self), 0), sizes;
  // An end of 0 is the end of the dim, whatever that is.
  for (size_t i = 0; i < offsets.size(); ++i) sizes.push_back(static_cast<uint32_t>(view.size(self, i).value_or(0)));
  offsets[dim] = part.first;
  sizes[dim] = part.count;
  builder.slice(input, output, offsets, sizes);
}

std::optional<Part> slice_part(const NodeView& view) {
  ValueId self = *view.tensor("self");
  std::optional<size_t> dim = view.dim("dim", view.rank(self));
  std::optional<int64_t> start = view["start"].is<None>() ? 0 : view.integer("start");
  std::optional<int64_t> end = view["end"].is<None>() ? INT64_MAX : view.integer("end");
  if (!dim || !start || !end || view.integer("step") != 1) return std::nullopt;
  return part_of(view, self, *dim, *start, *end);
}

bool supports_slice(const NodeView& view) {
  std::optional<Part> part = slice_part(view);
  return part && part->count > 0;
}

Status emit_slice(const NodeView& view, XnnpackBuilder& builder) {
  ValueId self = *view.tensor("self");
  ARGOSY_TRY(XnnId input, builder.row_major(self));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  slice_dim(view, builder, self, input, output, *view.dim("dim", view.rank(self)), *slice_part(view));
  return {};
}

std::optional<Part> select_part(const NodeView& view) {
  ValueId self = *view.tensor("self");
  std::optional<size_t> dim = view.dim("dim", view.rank(self));
  std::optional<int64_t> index = view.integer("index");
  if (!dim || !index) return std::nullopt;
  return part_of(view, self, *dim, *index, *index == -1 ? INT64_MAX : *index + 1);
}

bool supports_select(const NodeView& view) { return select_part(view) && view.dynamic_dims(view.output()) <= 1; }

Status emit_select(const NodeView& view, XnnpackBuilder& builder) {
  ValueId self = *view.tensor("self");
  size_t dim = *view.dim("dim", view.rank(self));
  ARGOSY_TRY(XnnId input, builder.row_major(self));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(self));
  dims[dim] = 1;
  XnnId part = builder.temporary(view.type(self).dtype, dims);
  slice_dim(view, builder, self, input, part, dim, *select_part(view));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.reshape(part, output, target(view, view.output()));
  return {};
}

bool supports_split(const NodeView& view) {
  ValueId self = *view.tensor("self");
  std::optional<size_t> dim = view.dim("dim", view.rank(self));
  std::optional<std::vector<int64_t>> sizes = view.integers("split_sizes");
  return dim && sizes && view.size(self, *dim) && std::ranges::all_of(*sizes, [](int64_t size) { return size > 0; });
}

Status emit_split(const NodeView& view, XnnpackBuilder& builder) {
  ValueId self = *view.tensor("self");
  size_t dim = *view.dim("dim", view.rank(self));
  std::vector<int64_t> sizes = *view.integers("split_sizes");
  ARGOSY_TRY(XnnId input, builder.row_major(self));
  uint32_t first = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Part part{first, static_cast<uint32_t>(sizes[i])};
    first += part.count;
    bool is_used = !view.graph()[view.output(i)].uses.empty();
    if (!is_used) continue;
    ARGOSY_TRY(XnnId output, builder.result(view.output(i)));
    slice_dim(view, builder, self, input, output, dim, part);
  }
  return {};
}

// ---- joining ----

bool supports_cat(const NodeView& view) {
  const auto* tensors = view["tensors"].get_if<ValueList>();
  size_t rank = view.rank(view.output());
  if (tensors == nullptr || tensors->size() < 2 || !view.dim("dim", rank)) return false;
  return std::ranges::all_of(*tensors, [&](ValueId value) { return value.is_valid() && view.rank(value) == rank; });
}

Status emit_cat(const NodeView& view, XnnpackBuilder& builder) {
  auto axis = static_cast<uint32_t>(*view.dim("dim", view.rank(view.output())));
  DType dtype = view.type(view.output()).dtype;
  std::vector<XnnId> parts;
  std::vector<uint32_t> extents;
  for (ValueId value : std::get<ValueList>(view["tensors"].variant())) {
    ARGOSY_TRY(XnnId part, builder.row_major(value));
    ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
    parts.push_back(part);
    extents.push_back(dims[axis]);
  }
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(view.output()));
  // One node joins up to five.
  constexpr size_t kMost = 5;
  while (parts.size() > kMost) {
    std::vector<XnnId> joined;
    std::vector<uint32_t> joined_extents;
    for (size_t i = 0; i < parts.size(); i += kMost) {
      size_t count = std::min(kMost, parts.size() - i);
      dims[axis] = 0;
      for (size_t k = i; k < i + count; ++k) dims[axis] += extents[k];
      joined_extents.push_back(dims[axis]);
      joined.push_back(count == 1 ? parts[i] : builder.temporary(dtype, dims));
      if (count > 1) builder.concatenate(std::span(parts).subspan(i, count), joined.back(), axis);
    }
    parts = std::move(joined);
    extents = std::move(joined_extents);
  }
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.concatenate(parts, output, axis);
  return {};
}

bool supports_pad(const NodeView& view) {
  std::optional<std::vector<int64_t>> pad = view.integers("pad");
  return pad && view.number("value") && pad->size() <= 2 * view.rank(view.output()) &&
         std::ranges::all_of(*pad, [](int64_t size) { return size >= 0; });
}

Status emit_pad(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.row_major(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  // Pairs from the last dim on.
  std::vector<int64_t> pad = *view.integers("pad");
  size_t rank = view.rank(view.output());
  std::vector<uint32_t> before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    before[rank - 1 - i] = static_cast<uint32_t>(pad[2 * i]);
    after[rank - 1 - i] = static_cast<uint32_t>(pad[2 * i + 1]);
  }
  builder.node(Kind::XNNStaticConstantPad,
               fb_xnnpack::CreateXNNStaticConstantPadDirect(
                   builder.buffer(), &before, &after, static_cast<float>(*view.number("value")), input, output, 0));
  return {};
}

using enum Effort;

constexpr XnnpackOp kShapesOps[] = {
    {"aten.cat.default", kMoves, supports_cat, emit_cat},
    {"aten.constant_pad_nd.default", kMoves, supports_pad, emit_pad},
    {"aten.permute.default", kMoves, supports_permute, emit_permute},
    {"aten.reshape.default", kMoves, supports_reshape, emit_reshape},
    {"aten.select.int", kMoves, supports_select, emit_select},
    {"aten.slice.Tensor", kMoves, supports_slice, emit_slice},
    {"aten.split_with_sizes.default", kMoves, supports_split, emit_split},
    {"aten.squeeze.dims", kMoves, supports_reshape, emit_reshape},
    {"aten.unsqueeze.default", kMoves, supports_reshape, emit_reshape},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_shapes() { return kShapesOps; }

}  // namespace argosy::executorch
