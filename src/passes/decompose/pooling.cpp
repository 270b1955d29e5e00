#include <limits>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// The numbers of two dims for an op of one dim that is computed in two, where the first has size 1.
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

/// Whether each element of a dim is in each of `parts` windows [floor(i * size / parts), ceil((i + 1) * size / parts)).
ValueId windows(AtenBuilder& f, ValueId x, int64_t dim, int64_t parts) {
  auto divided = [&](ValueId value) {
    return f.node(aten::kDivScalarMode, {{"self", value}, {"other", parts}, {"rounding_mode", std::string("floor")}},
                  DType::kI64, f.shape(value));
  };
  ValueId size = f.scalar(f.as_argument(f.item(f.size(x, dim), {x})), DType::kI64);
  ValueId place = f.arange(f.size(x, dim), DType::kI64, {x});
  ValueId part = f.unsqueeze(f.arange(f.integer(parts), DType::kI64, {}), 1);
  ValueId start = divided(f.mul(part, size));
  ValueId end = divided(f.add_integer(f.mul(f.add_integer(part, 1), size), parts - 1));
  ValueId is_after = f.compare("ge", place, start);
  return f.bitwise_and(is_after, f.compare("lt", place, end));
}

/// A dim of any size. A mean is a product with the share of each element in each window.
ValueId pool_windows(AtenBuilder& f, ValueId x, int64_t dim, int64_t parts, bool is_max) {
  ValueId is_inside = windows(f, x, dim, parts);
  ValueId last = f.transpose(x, dim, -1);
  if (is_max) {
    last = f.amax(f.where(is_inside, f.unsqueeze(last, -2), -std::numeric_limits<double>::infinity()), {-1}, false);
    return f.transpose(last, dim, -1);
  }
  ValueId share = f.cast(is_inside, f.dtype(x));
  share = f.div(share, f.sum(share, {1}, true));
  if (dim == -2) return f.matmul(share, x);
  return f.transpose(f.matmul(last, f.permute(share, {1, 0})), dim, -1);
}

/// Each of the last dims in as many windows as are wanted, dim by dim.
std::optional<ValueId> pool_dims(AtenBuilder& f, ValueId x, const std::vector<int64_t>& wanted, bool is_max) {
  auto reduced = [&](ValueId part, int64_t dim, bool keeps_dim) {
    return is_max ? f.amax(part, {dim}, keeps_dim) : f.mean(part, {dim}, keeps_dim);
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t dim = static_cast<int64_t>(i) - static_cast<int64_t>(wanted.size()), parts = wanted[i];
    std::optional<int64_t> size = f.size(x, dim).as_integer();
    if (parts < 1 || size == 0) return std::nullopt;
    if (size == parts) continue;
    if (parts == 1) {
      x = reduced(x, dim, true);
    } else if (!size) {
      x = pool_windows(f, x, dim, parts, is_max);
    } else if (*size % parts == 0) {
      Sizes split = f.shape(x);
      split[f.at(x, dim)] = f.integer(parts);
      split.insert(split.begin() + static_cast<std::ptrdiff_t>(f.at(x, dim)) + 1, f.integer(*size / parts));
      auto inner = static_cast<int64_t>(f.at(x, dim)) + 1;
      x = reduced(f.reshape(x, split), inner, false);
    } else {
      std::vector<ValueId> pooled;
      for (int64_t k = 0; k < parts; ++k) {
        int64_t start = k * *size / parts, end = ((k + 1) * *size + parts - 1) / parts;
        pooled.push_back(reduced(f.slice(x, dim, start, f.integer(end - start)), dim, true));
      }
      x = f.cat(pooled, dim);
    }
  }
  return x;
}

bool decompose_adaptive_pool(AtenBuilder& f) {
  std::optional<std::vector<int64_t>> wanted = numbers(f.argument("output_size"));
  bool is_max = f.output_count() == 2;
  if (!wanted || (is_max && f.is_used(1))) return false;
  std::optional<ValueId> pooled = pool_dims(f, f["self"], *wanted, is_max);
  if (!pooled) return false;
  if (!is_max) return f.replace(*pooled);
  return f.replace({*pooled, f.full(f.shape(*pooled), int64_t{0}, DType::kI64, {*pooled})});
}

/// Windows of one size are a plain pooling. Of others there may be a kernel for two dims.
bool decompose_adaptive_average(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  std::optional<std::vector<int64_t>> wanted = numbers(f.argument("output_size"));
  if (!wanted || f.rank(x) <= wanted->size()) return false;
  const size_t dims = wanted->size();
  std::vector<int64_t> kernel;
  bool is_one = true;
  for (size_t i = 0; i < dims; ++i) {
    std::optional<int64_t> size = f.size(x, static_cast<int64_t>(i) - static_cast<int64_t>(dims)).as_integer();
    is_one = is_one && (*wanted)[i] == 1;
    if (size && (*wanted)[i] > 0 && *size % (*wanted)[i] == 0) kernel.push_back(*size / (*wanted)[i]);
  }
  bool is_regular = kernel.size() == dims;
  if (is_one && dims == 2) return f.replace(f.mean(x, {-2, -1}, true));
  if (is_one || is_regular || dims == 3) {
    if (is_regular && dims == 2) {
      return f.replace(f.node(aten::kAvgPool2d,
                              {{"self", x}, {"kernel_size", to_list(kernel)}, {"stride", to_list(kernel)}},
                              result.dtype, result.shape));
    }
    return decompose_adaptive_pool(f);
  }
  bool is_flat = dims == 1;
  ValueId image = is_flat ? f.unsqueeze(x, -2) : x;
  const auto& size = std::get<IntList>(f.argument("output_size").variant());
  ValueId pooled = f.node(aten::kInternalAdaptiveAvgPool2d,
                          {{"self", image}, {"output_size", is_flat ? IntList{int64_t{1}, size[0]} : size}},
                          f.dtype(image), is_flat ? with_row(f, result.shape) : result.shape);
  return f.replace(is_flat ? f.squeeze(pooled, -2) : pooled);
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

constexpr RewriteRule kPoolingRules[] = {
    {.op = "aten.avg_pool1d.default", .name = "widen-pool", .apply = write<widen_avg_pool1d>},
    {.op = "aten.max_pool1d.default", .name = "widen-pool", .apply = write<widen_max_pool1d>},
    {.op = "aten.adaptive_avg_pool1d.default", .name = "adaptive-pool", .apply = write<decompose_adaptive_average>},
    {.op = "aten.adaptive_avg_pool2d.default", .name = "adaptive-pool", .apply = write<decompose_adaptive_average>},
    {.op = "aten.adaptive_avg_pool3d.default", .name = "adaptive-pool", .apply = write<decompose_adaptive_average>},
    {.op = "aten._adaptive_avg_pool2d.default", .name = "adaptive-pool", .apply = write<decompose_adaptive_pool>},
    {.op = "aten.adaptive_max_pool1d.default", .name = "adaptive-pool", .apply = write<decompose_adaptive_pool>},
    {.op = "aten.adaptive_max_pool2d.default", .name = "adaptive-pool", .apply = write<decompose_adaptive_pool>},
    {.op = "aten.avg_pool3d.default", .name = "decompose-pool3d", .apply = write<decompose_pool3d>},
    {.op = "aten.max_pool3d.default", .name = "decompose-pool3d", .apply = write<decompose_pool3d>},
};

}  // namespace

std::span<const RewriteRule> pooling() { return kPoolingRules; }

}  // namespace argosy::decompose
