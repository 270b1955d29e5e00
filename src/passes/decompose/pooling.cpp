#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

constexpr std::string_view kAdaptiveAvgPool2d =
    "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor";

/// A number for the last of two dims, the first of which has size 1.
IntList behind(int64_t first, const std::vector<int64_t>& single) { return IntList{first, single[0]}; }

std::optional<std::vector<int64_t>> stride_of(AtenBuilder& f, size_t count) {
  const auto* list = f.argument("stride").get_if<IntList>();
  return list != nullptr && list->empty() ? f.per_dim("kernel_size", count) : f.per_dim("stride", count);
}

Sizes with_row(AtenBuilder& f, Sizes shape) {
  shape.insert(shape.end() - 1, f.one());
  return shape;
}

bool widen_avg_pool1d(AtenBuilder& f) {
  auto kernel = f.per_dim("kernel_size", 1), stride = stride_of(f, 1), padding = f.per_dim("padding", 1);
  if (!kernel || !stride || !padding) return false;
  ValueId image = f.unsqueeze(f["self"], -2);
  ValueId pooled = f.node(aten::kAvgPool2d,
                          {{"self", image},
                           {"kernel_size", behind(1, *kernel)},
                           {"stride", behind(1, *stride)},
                           {"padding", behind(0, *padding)},
                           {"ceil_mode", f.argument("ceil_mode")},
                           {"count_include_pad", f.argument("count_include_pad")}},
                          f.dtype(image), with_row(f, f.result().shape));
  return f.replace(f.squeeze(pooled, -2));
}

bool widen_max_pool1d(AtenBuilder& f) {
  auto kernel = f.per_dim("kernel_size", 1), stride = stride_of(f, 1), padding = f.per_dim("padding", 1),
       dilation = f.per_dim("dilation", 1);
  if (!kernel || !stride || !padding || !dilation) return false;
  ValueId image = f.unsqueeze(f["self"], -2);
  ValueId pooled = f.node(aten::kMaxPool2d,
                          {{"self", image},
                           {"kernel_size", behind(1, *kernel)},
                           {"stride", behind(1, *stride)},
                           {"padding", behind(0, *padding)},
                           {"dilation", behind(1, *dilation)},
                           {"ceil_mode", f.argument("ceil_mode")}},
                          f.dtype(image), with_row(f, f.result().shape));
  return f.replace(f.squeeze(pooled, -2));
}

bool widen_adaptive_pool1d(AtenBuilder& f) {
  ValueId image = f.unsqueeze(f["self"], -2);
  Sizes shape = with_row(f, f.result().shape);
  const auto* size = f.argument("output_size").get_if<IntList>();
  if (size == nullptr || size->size() != 1) return false;
  ValueId pooled = f.node(kAdaptiveAvgPool2d, {{"self", image}, {"output_size", IntList{int64_t{1}, (*size)[0]}}},
                          f.dtype(image), std::move(shape));
  return f.replace(f.squeeze(pooled, -2));
}

/// One pixel is the mean of all.
bool decompose_adaptive_pool2d(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  if (f.rank(x) < 3) return false;
  if (f.size(x, -1) == result.shape.back() && f.size(x, -2) == result.shape[result.shape.size() - 2]) {
    return f.replace(x);
  }
  if (numbers(f.argument("output_size")) == std::vector<int64_t>{1, 1}) return f.replace(f.mean(x, {-2, -1}, true));
  if (f.op() == "aten._adaptive_avg_pool2d.default") return false;
  return f.replace(f.node(kAdaptiveAvgPool2d, {{"self", x}, {"output_size", f.argument("output_size")}}, result.dtype,
                          result.shape));
}

/// The mean of each region, dim by dim; regions are slices whose sizes are known.
bool decompose_adaptive_pool3d(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<std::vector<int64_t>> wanted = numbers(f.argument("output_size"));
  if (!wanted || wanted->size() != 3) return false;
  for (size_t i = 0; i < 3; ++i) {
    int64_t dim = static_cast<int64_t>(i) - 3, parts_wanted = (*wanted)[i];
    std::optional<int64_t> size = f.size(x, dim).as_integer();
    if (parts_wanted == 1) {
      x = f.mean(x, {dim}, true);
      continue;
    }
    if (!size || parts_wanted < 1) return false;
    std::vector<ValueId> parts;
    for (int64_t k = 0; k < parts_wanted; ++k) {
      int64_t start = k * *size / parts_wanted, end = ((k + 1) * *size + parts_wanted - 1) / parts_wanted;
      parts.push_back(f.mean(f.slice(x, dim, start, f.integer(end - start)), {dim}, true));
    }
    x = f.cat(parts, dim);
  }
  return f.replace(x);
}

/// The largest of each region; regions are slices whose sizes are known.
bool decompose_adaptive_max_pool(AtenBuilder& f) {
  ValueId x = f["self"];
  const auto* list = f.argument("output_size").get_if<IntList>();
  if (list == nullptr || f.is_used(1)) return false;
  const size_t dims = list->size();
  ValueId pooled = x;
  for (size_t i = 0; i < dims; ++i) {
    int64_t dim = static_cast<int64_t>(i) - static_cast<int64_t>(dims);
    std::optional<int64_t> size = f.size(x, dim).as_integer();
    const int64_t* wanted = std::get_if<int64_t>(&(*list)[i]);
    if (!size || wanted == nullptr || *wanted < 1) return false;
    std::vector<ValueId> parts;
    for (int64_t k = 0; k < *wanted; ++k) {
      int64_t start = k * *size / *wanted, end = ((k + 1) * *size + *wanted - 1) / *wanted;
      parts.push_back(f.amax(f.slice(pooled, dim, start, f.integer(end - start)), {dim}, true));
    }
    pooled = f.cat(parts, dim);
  }
  return f.replace({pooled, f.full(f.shape(pooled), int64_t{0}, DType::kI64, {pooled})});
}

/// Over three dims: two of them, then the first by slices of all its windows.
bool decompose_pool3d(AtenBuilder& f) {
  ValueId x = f["self"];
  bool is_max = f.op() == "aten.max_pool3d.default";
  auto kernel = f.per_dim("kernel_size", 3), stride = stride_of(f, 3), padding = f.per_dim("padding", 3);
  if (f.rank(x) != 5 || !kernel || !stride || !padding || f.flag("ceil_mode")) return false;
  if (is_max && f.per_dim("dilation", 3) != std::vector<int64_t>{1, 1, 1}) return false;
  if (!is_max && (f.has("divisor_override") || *padding != std::vector<int64_t>{0, 0, 0})) return false;
  if ((*padding)[0] != 0) return false;
  const Sizes result = f.result().shape;
  // [n, c, t, h, w] to [n, c * t, h, w]
  Sizes flat = {f.size(x, 0), f.symbols().mul(f.size(x, 1), f.size(x, 2)), f.size(x, 3), f.size(x, 4)};
  Sizes small = {flat[0], flat[1], result[3], result[4]};
  auto last = [](const std::vector<int64_t>& all) { return IntList{all[1], all[2]}; };
  std::vector<AtenBuilder::Named> arguments = {{"self", f.reshape(x, flat)},
                                               {"kernel_size", last(*kernel)},
                                               {"stride", last(*stride)},
                                               {"padding", last(*padding)}};
  ValueId pooled = f.node(is_max ? aten::kMaxPool2d : aten::kAvgPool2d, std::move(arguments), f.dtype(x), small);
  pooled = f.reshape(pooled, {f.size(x, 0), f.size(x, 1), f.size(x, 2), result[3], result[4]}, {x, pooled});
  ValueId total;
  for (int64_t i = 0; i < (*kernel)[0]; ++i) {
    ValueId part = f.slice(pooled, 2, i, result[2], (*stride)[0]);
    total = i == 0 ? part : is_max ? f.binary(aten::kMaximum, total, part) : f.add(total, part);
  }
  return f.replace(is_max ? total : f.mul(total, 1.0 / static_cast<double>((*kernel)[0])));
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.avg_pool1d.default", .name = "widen-pool", .apply = write<widen_avg_pool1d>},
    {.op = "aten.max_pool1d.default", .name = "widen-pool", .apply = write<widen_max_pool1d>},
    {.op = "aten.adaptive_avg_pool1d.default", .name = "widen-pool", .apply = write<widen_adaptive_pool1d>},
    {.op = "aten.adaptive_avg_pool2d.default",
     .name = "decompose-adaptive-pool",
     .apply = write<decompose_adaptive_pool2d>},
    {.op = "aten._adaptive_avg_pool2d.default",
     .name = "decompose-adaptive-pool",
     .apply = write<decompose_adaptive_pool2d>},
    {.op = "aten.adaptive_max_pool1d.default",
     .name = "decompose-adaptive-pool",
     .apply = write<decompose_adaptive_max_pool>},
    {.op = "aten.adaptive_max_pool2d.default",
     .name = "decompose-adaptive-pool",
     .apply = write<decompose_adaptive_max_pool>},
    {.op = "aten.adaptive_avg_pool3d.default",
     .name = "decompose-adaptive-pool",
     .apply = write<decompose_adaptive_pool3d>},
    {.op = "aten.avg_pool3d.default", .name = "decompose-pool3d", .apply = write<decompose_pool3d>},
    {.op = "aten.max_pool3d.default", .name = "decompose-pool3d", .apply = write<decompose_pool3d>},
};

}  // namespace

std::span<const RewriteRule> pooling() { return kRules; }

}  // namespace argosy::decompose
