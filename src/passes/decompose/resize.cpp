#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

enum class Filter : uint8_t { kNearest, kNearestExact, kLinear, kCubic };

struct ResizeRow {
  Filter filter;
  size_t dims;
};

/// One dim of a resize: how far apart output pixels are in the input, and where the first is.
struct Axis {
  int64_t dim;
  SymExpr from, to;
  std::optional<double> scale;  // of the sizes, if it was given
  std::optional<IntItem> size;  // to which it is resized, as it was given
};

/// A number as a tensor without dims.
ValueId as_tensor(AtenBuilder& f, const IntItem& size, DType dtype) { return f.scalar(f.as_argument(size), dtype); }

/// Size of an output pixel in the input.
ValueId step_of(AtenBuilder& f, const Axis& axis, bool aligns_corners, ValueId x) {
  ValueId from = as_tensor(f, f.item(axis.from, {x}), DType::kF32);
  ValueId to = as_tensor(f, axis.size ? *axis.size : f.item(axis.to, {x}), DType::kF32);
  if (aligns_corners) {
    from = f.add(from, -1.0);
    return f.div(from, f.clamp(f.add(to, -1.0), 1.0, std::nullopt));
  }
  if (axis.scale) return f.scalar(1 / *axis.scale, DType::kF32);
  return f.div(from, to);
}

/// Weights of the four neighbours at a distance t of the second, in 0 to 1.
std::vector<ValueId> cubic_weights(AtenBuilder& f, ValueId t) {
  constexpr double a = -0.75;
  auto near = [&](ValueId x) {  // ((a + 2) x - (a + 3)) x x + 1
    return f.add(f.mul(f.mul(f.add(f.mul(x, a + 2), -(a + 3)), x), x), 1.0);
  };
  auto far = [&](ValueId x) {  // ((a x - 5 a) x + 8 a) x - 4 a
    return f.add(f.mul(f.add(f.mul(f.add(f.mul(x, a), -5 * a), x), 8 * a), x), -4 * a);
  };
  ValueId rest = f.add(f.neg(t), 1.0);
  return {far(f.add(t, 1.0)), near(t), near(rest), far(f.add(rest, 1.0))};
}

/// Every axis by itself: neighbours are taken by index, and weighed.
ValueId resize_axis(AtenBuilder& f, ValueId x, const Axis& axis, Filter filter, bool aligns_corners) {
  IntItem size = axis.size ? *axis.size : f.item(axis.to, {x, f["input"]});
  ValueId places =
      f.node(aten::kArangeStartStep,
             {{"start", int64_t{0}}, {"end", f.as_argument(size)}, {"step", int64_t{1}}, {"dtype", DType::kF32}},
             DType::kF32, {axis.to});
  ValueId step = step_of(f, axis, aligns_corners, f["input"]);
  ValueId at;
  if (filter == Filter::kNearest) {
    at = f.mul(places, step);
  } else if (aligns_corners) {
    at = f.mul(places, step);
  } else if (filter == Filter::kNearestExact) {
    at = f.mul(f.add(places, 0.5), step);
  } else {
    at = f.add(f.mul(f.add(places, 0.5), step), -0.5);
    if (filter == Filter::kLinear) at = f.clamp(at, 0.0, std::nullopt);
  }
  ValueId last = f.add_integer(as_tensor(f, f.item(axis.from, {x}), DType::kI64), -1);
  auto taken = [&](ValueId index) {
    index = f.clamp(f.cast(index, DType::kI64), 0.0, std::nullopt);
    return f.index_select(x, axis.dim, f.binary(aten::kMinimum, index, last));
  };
  ValueId base = f.floor(at);
  if (filter == Filter::kNearest || filter == Filter::kNearestExact) return taken(base);
  ValueId t = f.sub(at, base);
  std::vector<ValueId> weights;
  int64_t first = 0;
  if (filter == Filter::kLinear) {
    weights = {f.add(f.neg(t), 1.0), t};
  } else {
    weights = cubic_weights(f, t);
    first = -1;
  }
  const size_t behind = f.rank(x) - 1 - f.at(x, axis.dim);
  ValueId total;
  for (size_t i = 0; i < weights.size(); ++i) {
    ValueId weight = f.cast(weights[i], f.dtype(x));
    for (size_t j = 0; j < behind; ++j) weight = f.unsqueeze(weight, -1);
    ValueId part = f.mul(taken(f.add(base, static_cast<double>(first) + static_cast<double>(i))), weight);
    total = i == 0 ? part : f.add(total, part);
  }
  return total;
}

bool decompose_resize(AtenBuilder& f) {
  const auto& row = *static_cast<const ResizeRow*>(f.rule().user_data);
  ValueId x = f["input"];
  const TensorType result = f.result();
  if (f.rank(x) != row.dims + 2) return false;
  const DoubleList* scales = f.knows("scale_factors") ? f.argument("scale_factors").get_if<DoubleList>() : nullptr;
  const IntList* sizes = f.argument("output_size").get_if<IntList>();
  bool aligns_corners = f.knows("align_corners") && f.flag("align_corners");
  ValueId resized = x;
  for (size_t i = 0; i < row.dims; ++i) {
    Axis axis{static_cast<int64_t>(i + 2), f.shape(x)[i + 2], result.shape[i + 2], std::nullopt, std::nullopt};
    if (sizes != nullptr && i < sizes->size()) axis.size = (*sizes)[i];
    if (axis.from == axis.to) continue;
    if (scales != nullptr && i < scales->size()) axis.scale = (*scales)[i];
    resized = resize_axis(f, resized, axis, row.filter, aligns_corners);
  }
  return f.replace(resized);
}

/// The weight of each input pixel in each output pixel; where an image shrinks, the filter covers more input pixels.
ValueId smooth_weights(AtenBuilder& f, const Axis& axis, Filter filter, bool aligns_corners) {
  ValueId input = f["input"];
  IntItem size = axis.size ? *axis.size : f.item(axis.to, {input});
  ValueId places =
      f.node(aten::kArangeStartStep,
             {{"start", int64_t{0}}, {"end", f.as_argument(size)}, {"step", int64_t{1}}, {"dtype", DType::kF32}},
             DType::kF32, {axis.to});
  ValueId step = step_of(f, axis, aligns_corners, input), width = f.clamp(step, 1.0, std::nullopt);
  ValueId centre = f.unsqueeze(f.mul(f.add(places, 0.5), step), 1), pixel = f.arange(axis.from, DType::kF32, {input});
  ValueId reach = f.mul(width, filter == Filter::kLinear ? 1.0 : 2.0);
  ValueId first = f.floor(f.add(f.sub(centre, reach), 0.5)), end = f.floor(f.add(f.add(centre, reach), 0.5));
  ValueId is_near = f.compare("ge", pixel, first);
  is_near = f.bitwise_and(is_near, f.compare("lt", pixel, end));
  ValueId x = f.abs(f.div(f.sub(f.add(pixel, 0.5), centre), width));
  ValueId weight;
  if (filter == Filter::kLinear) {
    weight = f.clamp(f.add(f.neg(x), 1.0), 0.0, std::nullopt);
  } else {
    constexpr double a = -0.5;
    ValueId near = f.add(f.mul(f.mul(f.add(f.mul(x, a + 2), -(a + 3)), x), x), 1.0);
    ValueId far = f.mul(f.add(f.mul(f.add(f.mul(f.add(x, -5.0), x), 8.0), x), -4.0), a);
    weight = f.where(f.compare("lt", x, Argument(2.0)), far, 0.0);
    weight = f.where(f.compare("lt", x, Argument(1.0)), near, weight);
  }
  weight = f.where(is_near, weight, 0.0);
  return f.cast(f.div(weight, f.sum(weight, {1}, true)), f.dtype(input));
}

/// Antialiased: rows, then columns, as products of matrices.
bool decompose_smooth_resize(AtenBuilder& f) {
  ValueId x = f["input"];
  const TensorType result = f.result();
  const auto& row = *static_cast<const ResizeRow*>(f.rule().user_data);
  if (f.rank(x) != 4 || kind_of(f.dtype(x)) != DTypeKind::kFloat) return false;
  const DoubleList* scales = f.argument("scale_factors").get_if<DoubleList>();
  const IntList* sizes = f.argument("output_size").get_if<IntList>();
  for (size_t i = 2; i-- > 0;) {
    Axis axis{static_cast<int64_t>(i + 2), f.shape(f["input"])[i + 2], result.shape[i + 2], std::nullopt, std::nullopt};
    if (sizes != nullptr && i < sizes->size()) axis.size = (*sizes)[i];
    if (axis.from == axis.to) continue;
    if (scales != nullptr && i < scales->size()) axis.scale = (*scales)[i];
    ValueId weights = smooth_weights(f, axis, row.filter, f.flag("align_corners"));
    x = i == 1 ? f.matmul(x, f.permute(weights, {1, 0})) : f.matmul(weights, x);
  }
  return f.replace(x);
}

// ---- padding ----

/// Negative padding becomes a slice; the kernel only adds.
bool cut_padding(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<std::vector<int64_t>> pad = numbers(f.argument("pad"));
  if (!pad || std::ranges::all_of(*pad, [](int64_t count) { return count >= 0; })) return false;
  if (pad->size() % 2 != 0 || pad->size() / 2 > f.rank(x)) return false;
  for (size_t i = 0; i < pad->size() / 2; ++i) {
    int64_t &before = (*pad)[2 * i], &after = (*pad)[2 * i + 1], dim = -1 - static_cast<int64_t>(i);
    int64_t first = std::max<int64_t>(-before, 0), behind = std::max<int64_t>(-after, 0);
    if (first > 0 || behind > 0) {
      x = f.slice(x, dim, first, f.symbols().sub(f.size(x, dim), f.integer(first + behind)));
    }
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  const TensorType result = f.result();
  if (std::ranges::all_of(*pad, [](int64_t count) { return count == 0; })) return f.replace(x);
  return f.replace(f.node(aten::kConstantPadNd, {{"self", x}, {"pad", to_list(*pad)}, {"value", f.argument("value")}},
                          result.dtype, result.shape));
}

/// pad.default of modes other than a constant.
bool decompose_pad(AtenBuilder& f) {
  ValueId x = f["self"];
  const auto* mode = f.argument("mode").get_if<std::string>();
  const auto* given = f.argument("pad").get_if<IntList>();
  if (mode == nullptr || given == nullptr || given->empty() || given->size() % 2 != 0 || given->size() > 6)
    return false;
  const TensorType result = f.result();
  std::optional<std::vector<int64_t>> pad = numbers(f.argument("pad"));
  if (*mode == "reflect" || *mode == "replicate") {
    std::string schema = std::string("aten::") + (*mode == "reflect" ? "reflection" : "replication") + "_pad" +
                         std::to_string(given->size() / 2) + "d(Tensor self, SymInt[" + std::to_string(given->size()) +
                         "] padding) -> Tensor";
    return f.replace(f.node(schema, {{"self", x}, {"padding", f.argument("pad")}}, result.dtype, result.shape));
  }
  if (*mode != "circular" || !pad) return false;
  for (size_t i = 0; i < pad->size() / 2; ++i) {
    int64_t before = (*pad)[2 * i], after = (*pad)[2 * i + 1];
    int64_t dim = -1 - static_cast<int64_t>(i);
    std::optional<int64_t> size = f.size(x, dim).as_integer();
    if (!size || before < 0 || after < 0) return false;
    std::vector<ValueId> parts;
    if (before > 0) parts.push_back(f.slice(x, dim, *size - before, f.integer(before)));
    parts.push_back(x);
    if (after > 0) parts.push_back(f.slice(x, dim, 0, f.integer(after)));
    x = f.cat(parts, dim);
  }
  return f.replace(x);
}

constexpr ResizeRow kNearest1d{Filter::kNearest, 1}, kNearest3d{Filter::kNearest, 3},
    kNearestExact1d{Filter::kNearestExact, 1}, kNearestExact2d{Filter::kNearestExact, 2}, kLinear1d{Filter::kLinear, 1},
    kBilinear{Filter::kLinear, 2}, kTrilinear{Filter::kLinear, 3}, kBicubic{Filter::kCubic, 2};

constexpr RewriteRule kResizeRules[] = {
    {.op = "aten.upsample_nearest1d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kNearest1d},
    {.op = "aten.upsample_nearest3d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kNearest3d},
    {.op = "aten._upsample_nearest_exact1d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kNearestExact1d},
    {.op = "aten._upsample_nearest_exact2d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kNearestExact2d},
    {.op = "aten.upsample_linear1d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kLinear1d},
    {.op = "aten.upsample_trilinear3d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kTrilinear},
    {.op = "aten.upsample_bicubic2d.vec",
     .name = "decompose-resize",
     .apply = write<decompose_resize>,
     .user_data = &kBicubic},
    {.op = "aten._upsample_bilinear2d_aa.vec",
     .name = "decompose-resize",
     .apply = write<decompose_smooth_resize>,
     .user_data = &kBilinear},
    {.op = "aten._upsample_bicubic2d_aa.vec",
     .name = "decompose-resize",
     .apply = write<decompose_smooth_resize>,
     .user_data = &kBicubic},
    {.op = "aten.constant_pad_nd.default", .name = "cut-padding", .apply = write<cut_padding>},
    {.op = "aten.pad.default", .name = "decompose-pad", .apply = write<decompose_pad>},
};

}  // namespace

std::span<const RewriteRule> resize() { return kResizeRules; }

}  // namespace argosy::decompose
