#include <algorithm>
#include <numeric>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// All elements that a window meets, one window after the other.
bool decompose_unfold(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<size_t> dim = f.dim("dimension", f.rank(x));
  std::optional<int64_t> width = f.integer("size"), step = f.integer("step");
  if (!dim || !width || !step) return false;
  const TensorType result = f.result();
  ValueId starts;
  if (std::optional<int64_t> length = f.shape(x)[*dim].as_integer()) {
    starts = f.mul_integer(f.arange(f.integer((*length - *width) / *step + 1), DType::kI64, {x}), *step);
  } else {
    // Every place that a window may begin at. A formula for their number may not be known by the sizes of x.
    ValueId places = f.arange(f.shape(x)[*dim], DType::kI64, {x});
    Argument end = *width == 1 ? Argument(None{}) : Argument(1 - *width);
    starts = f.node(aten::kSliceTensor,
                    {{"self", places}, {"dim", int64_t{0}}, {"start", int64_t{0}}, {"end", end}, {"step", *step}},
                    DType::kI64, {result.shape[*dim]});
  }
  ValueList indices(*dim + 1);
  starts = f.unsqueeze(starts, 1);
  indices.back() = f.add(starts, f.arange(f.integer(*width), DType::kI64, {}));
  // [.., window, element, ..] with the elements last
  Sizes shape = f.shape(x);
  shape[*dim] = f.integer(*width);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*dim), result.shape[*dim]);
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(*dim) + 1,
              order.begin() + static_cast<std::ptrdiff_t>(*dim) + 2, order.end());
  ValueId taken = f.node(aten::kIndexTensor, {{"self", x}, {"indices", indices}}, f.dtype(x), std::move(shape));
  return f.replace(f.permute(taken, order));
}

/// Patches of an image as columns.
bool decompose_im2col(AtenBuilder& f) {
  ValueId x = f["self"];
  auto kernel = f.per_dim("kernel_size", 2), dilation = f.per_dim("dilation", 2), padding = f.per_dim("padding", 2),
       stride = f.per_dim("stride", 2);
  if (f.rank(x) != 4 || !kernel || !dilation || !padding || !stride) return false;
  const TensorType result = f.result();
  Sizes padded = f.shape(x);
  for (size_t i = 0; i < 2; ++i) padded[2 + i] = f.symbols().add(padded[2 + i], f.integer(2 * (*padding)[i]));
  if ((*padding)[0] != 0 || (*padding)[1] != 0) {
    x = f.node(aten::kConstantPadNd,
               {{"self", x}, {"pad", to_list({(*padding)[1], (*padding)[1], (*padding)[0], (*padding)[0]})}},
               f.dtype(x), padded);
  }
  auto windows = [&](size_t i) {
    SymExpr room = f.symbols().sub(padded[2 + i], f.integer((*dilation)[i] * ((*kernel)[i] - 1) + 1));
    return f.symbols().add(f.symbols().floor_div(room, f.integer((*stride)[i])), f.one());
  };
  SymExpr rows = windows(0), columns = windows(1);
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < (*kernel)[0]; ++i) {
    for (int64_t j = 0; j < (*kernel)[1]; ++j) {
      ValueId part = f.slice(x, 2, i * (*dilation)[0], rows, (*stride)[0]);
      part = f.slice(part, 3, j * (*dilation)[1], columns, (*stride)[1], {x});
      parts.push_back(f.unsqueeze(part, 2));
    }
  }
  return f.replace(f.reshape(f.cat(parts, 2), result.shape));
}

/// The sum of patches where they lie in an image: what im2col took apart, put together.
bool decompose_col2im(AtenBuilder& f) {
  ValueId x = f["self"];
  auto size = f.per_dim("output_size", 2), kernel = f.per_dim("kernel_size", 2), dilation = f.per_dim("dilation", 2),
       padding = f.per_dim("padding", 2), stride = f.per_dim("stride", 2);
  if (f.rank(x) != 3 || !size || !kernel || !dilation || !padding || !stride) return false;
  const TensorType result = f.result();
  int64_t padded[2];
  ValueId places[2];  // [element of the kernel, patch]
  for (size_t i = 0; i < 2; ++i) {
    padded[i] = (*size)[i] + 2 * (*padding)[i];
    int64_t patches = (padded[i] - (*dilation)[i] * ((*kernel)[i] - 1) - 1) / (*stride)[i] + 1;
    ValueId elements = f.mul_integer(f.arange(f.integer((*kernel)[i]), DType::kI64, {}), (*dilation)[i]);
    ValueId starts = f.mul_integer(f.arange(f.integer(patches), DType::kI64, {}), (*stride)[i]);
    places[i] = f.add(f.unsqueeze(elements, 1), starts);
  }
  // [row of the kernel, column of it, row of patches, column of them]
  ValueId rows = f.unsqueeze(f.unsqueeze(f.mul_integer(places[0], padded[1]), 1), 3);
  ValueId columns = f.unsqueeze(f.unsqueeze(places[1], 0), 2);
  ValueId all = f.add(rows, columns);
  all = f.reshape(all, {f.symbols().mul(f.shape(all))});
  Sizes flat = {result.shape[0], result.shape[1], f.integer(padded[0] * padded[1])};
  ValueId values = f.reshape(x, {flat[0], flat[1], f.size(all, 0)});
  ValueId image = f.node(aten::kIndexPut,
                         {{"self", f.full(flat, int64_t{0}, result.dtype, {x})},
                          {"indices", ValueList{ValueId(), ValueId(), all}},
                          {"values", values},
                          {"accumulate", true}},
                         result.dtype, flat);
  image = f.reshape(image, {flat[0], flat[1], f.integer(padded[0]), f.integer(padded[1])}, {x});
  for (size_t i = 0; i < 2; ++i) {
    image = f.slice(image, static_cast<int64_t>(2 + i), (*padding)[i], f.integer((*size)[i]));
  }
  return f.replace(image);
}

/// Parts that follow each other.
bool decompose_split(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!dim) return false;
  auto at = static_cast<int64_t>(*dim);
  std::vector<ValueId> parts;
  int64_t start = 0;
  for (size_t i = 0; i < f.output_count(); ++i) {
    std::optional<int64_t> size = f.result(i).shape[*dim].as_integer();
    if (!size) return false;
    parts.push_back(f.slice(x, at, start, f.integer(*size)));
    start += *size;
  }
  return f.replace(parts);
}

/// The last elements of a dim before the others.
bool decompose_roll(AtenBuilder& f) {
  constexpr std::string_view kRemainder = aten::kRemainderTensor;
  ValueId x = f["self"];
  auto shifts = numbers(f.argument("shifts")), dims = numbers(f.argument("dims"));
  if (!shifts || !dims || dims->empty() || shifts->size() != dims->size()) return false;
  for (size_t i = 0; i < dims->size(); ++i) {
    auto at = static_cast<int64_t>(f.at(x, (*dims)[i]));
    std::optional<int64_t> size = f.size(x, at).as_integer();
    if (size == 0) continue;
    if (size) {
      int64_t shift = (((*shifts)[i] % *size) + *size) % *size;
      if (shift == 0) continue;
      ValueId last = f.slice(x, at, *size - shift, f.integer(shift));
      x = f.cat({last, f.slice(x, at, 0, f.integer(*size - shift))}, at);
      continue;
    }
    ValueId count = f.scalar(f.as_argument(f.item(f.size(x, at), {x})), DType::kI64);
    ValueId places = f.add_integer(f.arange(f.size(x, at), DType::kI64, {x}), -(*shifts)[i]);
    // At least 1, so that a dim without elements does not divide by 0.
    x = f.index_select(x, at, f.binary(kRemainder, places, f.clamp(count, 1.0, std::nullopt)));
  }
  return f.replace(x);
}

/// Elements whose row and column differ by `offset`, in a last dim.
bool decompose_diagonal(AtenBuilder& f) {
  ValueId x = f["self"];
  const size_t rank = f.rank(x);
  std::optional<size_t> first = f.dim("dim1", rank), second = f.dim("dim2", rank);
  std::optional<int64_t> offset = f.integer("offset");
  if (!first || !second || !offset) return false;
  const Sizes result = f.result().shape;
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) {
    if (i != *first && i != *second) order.push_back(static_cast<int64_t>(i));
  }
  order.push_back(static_cast<int64_t>(*first));
  order.push_back(static_cast<int64_t>(*second));
  const SymExpr height = f.shape(x)[*first], width = f.shape(x)[*second];
  // [.., row, column] flattened over both: row * width + column
  ValueId matrix = f.permute(x, order);
  Sizes flat(f.shape(matrix).begin(), f.shape(matrix).end() - 2);
  flat.push_back(f.symbols().mul(height, width));
  ValueId along = f.arange(result.back(), DType::kI64, {x});
  ValueId rows = f.add_integer(along, std::max<int64_t>(-*offset, 0));
  ValueId columns = f.add_integer(along, std::max<int64_t>(*offset, 0));
  ValueId index = f.add(f.mul(rows, f.scalar(f.as_argument(f.item(width, {x})), DType::kI64)), columns);
  return f.replace(f.index_select(f.reshape(matrix, flat, {x}), -1, index));
}

/// [.., c, h * r, w * r] to [.., c * r * r, h, w]
bool decompose_pixel_unshuffle(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<int64_t> factor = f.integer("downscale_factor");
  if (!factor || f.rank(x) < 3) return false;
  const Sizes result = f.result().shape;
  const size_t lead = f.rank(x) - 3;
  Sizes split(f.shape(x).begin(), f.shape(x).end() - 2);
  for (size_t i = lead + 1; i < lead + 3; ++i) {
    split.push_back(result[i]);
    split.push_back(f.integer(*factor));
  }
  std::vector<int64_t> order(split.size());
  std::iota(order.begin(), order.end(), 0);
  auto at = static_cast<int64_t>(lead);
  std::ranges::copy(std::vector{at + 2, at + 4, at + 1, at + 3}, order.begin() + at + 1);
  return f.replace(f.reshape(f.permute(f.reshape(x, split), order), result, {x}));
}

/// Any elements of a tensor's memory. Only for contiguous tensors that are not part of another one: of others it is not
/// known what lies beside them.
bool decompose_as_strided(AtenBuilder& f) {
  ValueId x = f["self"];
  auto size = numbers(f.argument("size")), stride = numbers(f.argument("stride"));
  std::optional<int64_t> offset = f.has("storage_offset") ? f.integer("storage_offset") : std::optional<int64_t>(0);
  if (!size || !stride || !offset || size->size() != stride->size()) return false;
  SymExpr next = f.one();
  for (size_t i = f.rank(x); i-- > 0; next = f.symbols().mul(next, f.shape(x)[i])) {
    if (!f.type(x).strides.empty() && f.type(x).strides[i] != next) return false;
  }
  for (std::string_view view : {"aten.slice.Tensor", "aten.select.int", "aten.expand.default", "aten.permute.default",
                                "aten.split_with_sizes.default", "aten.diagonal.default", "aten.unfold.default"}) {
    if (f.made_by(x, view) != nullptr) return false;
  }
  ValueId flat = f.reshape(x, {f.rank(x) == 0 ? f.one() : f.symbols().mul(f.shape(x))});
  ValueId places = f.full({}, *offset, DType::kI64, {});
  for (size_t i = 0; i < size->size(); ++i) {
    ValueId own = f.mul_integer(f.arange(f.integer((*size)[i]), DType::kI64, {}), (*stride)[i]);
    places = f.add(f.unsqueeze(places, -1), own);
  }
  return f.replace(
      f.node(aten::kIndexTensor, {{"self", flat}, {"indices", ValueList{places}}}, f.dtype(x), f.result().shape));
}

/// All combinations of elements, the last tensor's changing fastest.
bool decompose_cartesian_prod(AtenBuilder& f) {
  const auto* given = f.argument("tensors").get_if<ValueList>();
  if (given == nullptr || given->empty()) return false;
  const std::vector<ValueId> tensors(given->begin(), given->end());
  if (tensors.size() == 1) return f.replace(tensors[0]);
  const TensorType result = f.result();
  Sizes all;
  for (ValueId tensor : tensors) all.push_back(f.size(tensor, 0));
  std::vector<ValueId> columns;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ValueId wide = f.cast(tensors[i], result.dtype);
    for (size_t behind = i + 1; behind < tensors.size(); ++behind) wide = f.unsqueeze(wide, -1);
    columns.push_back(f.unsqueeze(f.expand(wide, all, tensors), -1));
  }
  return f.replace(f.reshape(f.cat(columns, -1), result.shape, tensors));
}

/// Matrices along a diagonal, zeros beside them.
bool decompose_block_diag(AtenBuilder& f) {
  const auto* given = f.argument("tensors").get_if<ValueList>();
  if (given == nullptr || given->empty()) return false;
  std::vector<ValueId> blocks(given->begin(), given->end());
  const TensorType result = f.result();
  SymExpr before = f.integer(0);
  for (ValueId& block : blocks) {
    block = f.cast(block, result.dtype);
    while (f.rank(block) < 2) block = f.unsqueeze(block, 0);
  }
  const std::vector<ValueId> own = blocks;
  for (ValueId& block : blocks) {
    SymExpr width = f.size(block, 1), behind = f.symbols().sub(result.shape[1], f.symbols().add(before, width));
    block = f.node(aten::kConstantPadNd, {{"self", block}, {"pad", f.items({before, behind}, own)}}, result.dtype,
                   {f.size(block, 0), result.shape[1]});
    before = f.symbols().add(before, width);
  }
  return f.replace(f.cat(blocks, 0));
}

constexpr RewriteRule kArrangementRules[] = {
    {.op = "aten.as_strided.default", .name = "decompose-strides", .apply = write<decompose_as_strided>},
    {.op = "aten.block_diag.default", .name = "decompose-block-diag", .apply = write<decompose_block_diag>},
    {.op = "aten.cartesian_prod.default", .name = "decompose-product", .apply = write<decompose_cartesian_prod>},
    {.op = "aten.chunk.default", .name = "decompose-split", .apply = write<decompose_split>},
    {.op = "aten.col2im.default", .name = "decompose-col2im", .apply = write<decompose_col2im>},
    {.op = "aten.diagonal.default", .name = "decompose-diagonal", .apply = write<decompose_diagonal>},
    {.op = "aten.im2col.default", .name = "decompose-im2col", .apply = write<decompose_im2col>},
    {.op = "aten.pixel_unshuffle.default", .name = "decompose-unshuffle", .apply = write<decompose_pixel_unshuffle>},
    {.op = "aten.roll.default", .name = "decompose-roll", .apply = write<decompose_roll>},
    {.op = "aten.split_with_sizes.default", .name = "decompose-split", .apply = write<decompose_split>},
    {.op = "aten.unfold.default", .name = "decompose-unfold", .apply = write<decompose_unfold>},
};

}  // namespace

std::span<const RewriteRule> arrangement() { return kArrangementRules; }

}  // namespace argosy::decompose
