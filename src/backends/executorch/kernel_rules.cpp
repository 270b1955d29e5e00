#include <numeric>

#include "backends/executorch/rules.h"
#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

/// The last `count` dims.
std::vector<int64_t> last_dims(size_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), -static_cast<int64_t>(count));
  return dims;
}

bool select_convolution(AtenBuilder& f) {
  ValueId input = f["input"], weight = f["weight"];
  const size_t rank = f.rank(weight), dims = rank - 2;
  if (rank < 3 || rank > 4) return false;
  bool is_transposed = f.knows("output_padding"), has_batch = f.rank(input) == rank;
  auto stride = f.per_dim("stride", dims), padding = f.per_dim("padding", dims), dilation = f.per_dim("dilation", dims);
  auto output_padding = is_transposed ? f.per_dim("output_padding", dims) : std::vector<int64_t>(dims, 0);
  if (!stride || !padding || !dilation || !output_padding) return false;
  if (!has_batch) input = f.unsqueeze(input, 0);
  Sizes shape = f.result().shape;
  if (!has_batch) shape.insert(shape.begin(), f.one());
  ValueId result = f.node(aten::kConvolution,
                          {{"input", input},
                           {"weight", weight},
                           {"bias", f.argument("bias")},
                           {"stride", to_list(*stride)},
                           {"padding", to_list(*padding)},
                           {"dilation", to_list(*dilation)},
                           {"transposed", is_transposed},
                           {"output_padding", to_list(*output_padding)},
                           {"groups", f.argument("groups")}},
                          f.dtype(input), std::move(shape));
  return f.replace(has_batch ? result : f.squeeze(result, 0));
}

bool select_max_pool2d(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  std::vector<ValueId> pooled = f.nodes(aten::kMaxPool2dWithIndices,
                                        {{"self", x},
                                         {"kernel_size", f.argument("kernel_size")},
                                         {"stride", f.argument("stride")},
                                         {"padding", f.argument("padding")},
                                         {"dilation", f.argument("dilation")},
                                         {"ceil_mode", f.argument("ceil_mode")}},
                                        {result, {DType::kI64, result.shape, {}}});
  return f.replace(pooled[0]);
}

/// The kernel does not sort bools.
bool select_topk(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.dtype(x) != DType::kBool) return false;
  const TensorType values = f.result(0), indices = f.result(1);
  std::vector<ValueId> found = f.nodes(aten::kTopk,
                                       {{"self", f.cast(x, DType::kU8)},
                                        {"k", f.argument("k")},
                                        {"dim", f.argument("dim")},
                                        {"largest", f.argument("largest")},
                                        {"sorted", f.argument("sorted")}},
                                       {{DType::kU8, values.shape, {}}, indices});
  return f.replace({f.cast(found[0], DType::kBool), found[1]});
}

/// mm, or bmm with all dims but the last two merged.
ValueId multiply(AtenBuilder& f, ValueId a, ValueId b) {
  if (f.rank(b) == 2) {
    if (f.rank(a) == 2) {
      return f.node(aten::kMm, {{"self", a}, {"mat2", b}}, f.dtype(a), {f.size(a, 0), f.size(b, 1)});
    }
    Sizes flat = {f.symbols().mul(Sizes(f.shape(a).begin(), f.shape(a).end() - 1)), f.size(a, -1)};
    Sizes result = f.shape(a);
    result.back() = f.size(b, 1);
    return f.reshape(multiply(f, f.reshape(a, flat), b), result, {a, b});
  }
  Sizes left(f.shape(a).begin(), f.shape(a).end() - 2), right(f.shape(b).begin(), f.shape(b).end() - 2);
  Sizes batch = f.broadcast(left, right);
  auto as_batch = [&](ValueId x) {
    Sizes wide = batch;
    wide.insert(wide.end(), f.shape(x).end() - 2, f.shape(x).end());
    x = f.expand(x, wide, {a, b});
    return f.reshape(x, {f.symbols().mul(batch), f.size(x, -2), f.size(x, -1)});
  };
  Sizes result = batch;
  result.push_back(f.size(a, -2));
  result.push_back(f.size(b, -1));
  ValueId x = as_batch(a), y = as_batch(b);
  ValueId product =
      f.node(aten::kBmm, {{"self", x}, {"mat2", y}}, f.dtype(a), {f.size(x, 0), f.size(x, 1), f.size(y, 2)});
  return f.reshape(product, result, {a, b});
}

bool select_matmul(AtenBuilder& f) {
  ValueId a = f["self"], b = f["other"];
  DType dtype = f.result().dtype;
  if (f.rank(a) == 0 || f.rank(b) == 0) return false;
  a = f.cast(a, dtype);
  b = f.cast(b, dtype);
  bool is_row = f.rank(a) == 1, is_column = f.rank(b) == 1;
  if (is_row) a = f.unsqueeze(a, 0);
  if (is_column) b = f.unsqueeze(b, 1);
  ValueId product = multiply(f, a, b);
  if (is_column) product = f.squeeze(product, -1);
  if (is_row) product = f.squeeze(product, is_column ? -1 : -2);
  return f.replace(product);
}

/// The kernel takes inputs of at least two dims, and weights and inputs of one dtype.
bool select_linear(AtenBuilder& f) {
  ValueId input = f["input"], weight = f["weight"];
  DType dtype = f.result().dtype;
  if (f.rank(weight) == 1) {
    ValueId sums = f.sum(f.mul(input, weight), {-1}, false);
    return f.replace(f.has("bias") ? f.add(sums, f["bias"]) : sums);
  }
  bool has_one_dtype = f.dtype(input) == dtype && f.dtype(weight) == dtype &&
                       (!f.has("bias") || (f.dtype(f["bias"]) == dtype && f.rank(f["bias"]) == 1));
  if (f.rank(input) > 1 && has_one_dtype) return false;
  bool is_row = f.rank(input) == 1;
  input = f.cast(is_row ? f.unsqueeze(input, 0) : input, dtype);
  Sizes shape = f.shape(input);
  shape.back() = f.size(weight, 0);
  bool is_vector = f.has("bias") && f.rank(f["bias"]) == 1;
  Argument bias = is_vector ? Argument(f.cast(f["bias"], dtype)) : Argument(None{});
  ValueId result = f.node(
      aten::kLinear, {{"input", input}, {"weight", f.cast(weight, dtype)}, {"bias", std::move(bias)}}, dtype, shape);
  if (is_row) result = f.squeeze(result, 0);
  if (f.has("bias") && !is_vector) result = f.add(result, f["bias"]);
  return f.replace(result);
}

/// (input, weight, bias, groups) as the kernel takes them.
std::vector<ValueId> group_norm(AtenBuilder& f, ValueId x, int64_t groups, double eps) {
  Sizes image(f.shape(x).begin() + 2, f.shape(x).end());
  SymExpr pixels = image.empty() ? f.one() : f.symbols().mul(image);
  TensorType moments{f.dtype(x), {f.size(x, 0), f.integer(groups)}, {}};
  return f.nodes(aten::kNativeGroupNorm,
                 {{"input", x},
                  {"weight", f.argument("weight")},
                  {"bias", f.argument("bias")},
                  {"N", f.as_argument(f.item(f.size(x, 0), {x}))},
                  {"C", f.as_argument(f.item(f.size(x, 1), {x}))},
                  {"HxW", f.as_argument(f.item(pixels, {x}))},
                  {"group", groups},
                  {"eps", eps}},
                 {{f.dtype(x), f.shape(x), {}}, moments, moments});
}

bool select_group_norm(AtenBuilder& f) {
  ValueId x = f["input"];
  std::optional<int64_t> groups = f.integer("num_groups");
  if (!groups || f.rank(x) < 2) return false;
  return f.replace(group_norm(f, x, *groups, f.number("eps").value_or(1e-5))[0]);
}

bool select_instance_norm(AtenBuilder& f) {
  ValueId x = f["input"];
  std::optional<int64_t> channels = f.rank(x) >= 2 ? f.size(x, 1).as_integer() : std::nullopt;
  if (!channels || !f.flag("use_input_stats")) return false;
  return f.replace(group_norm(f, x, *channels, f.number("eps").value_or(1e-5))[0]);
}

bool select_layer_norm(AtenBuilder& f) {
  ValueId x = f["input"];
  const auto* normalized = f.argument("normalized_shape").get_if<IntList>();
  if (normalized == nullptr || normalized->size() > f.rank(x)) return false;
  Sizes moments = f.reduced(x, last_dims(normalized->size()), true);
  TensorType small{f.dtype(x), moments, {}};
  std::vector<ValueId> results = f.nodes(aten::kNativeLayerNorm,
                                         {{"input", x},
                                          {"normalized_shape", *normalized},
                                          {"weight", f.argument("weight")},
                                          {"bias", f.argument("bias")},
                                          {"eps", f.argument("eps")}},
                                         {{f.dtype(x), f.shape(x), {}}, small, small});
  return f.replace(results[0]);
}

constexpr RewriteRule kKernelRules[] = {
    {.op = "aten.conv1d.default", .name = "select-convolution", .apply = write<select_convolution>},
    {.op = "aten.conv2d.default", .name = "select-convolution", .apply = write<select_convolution>},
    {.op = "aten.conv_transpose1d.default", .name = "select-convolution", .apply = write<select_convolution>},
    {.op = "aten.conv_transpose2d.input", .name = "select-convolution", .apply = write<select_convolution>},
    {.op = "aten.max_pool2d.default", .name = "select-max-pool", .apply = write<select_max_pool2d>},
    {.op = "aten.topk.default", .name = "select-topk", .apply = write<select_topk>},
    {.op = "aten.matmul.default", .name = "select-matmul", .apply = write<select_matmul>},
    {.op = "aten.linear.default", .name = "select-linear", .apply = write<select_linear>},
    {.op = "aten.layer_norm.default", .name = "select-layer-norm", .apply = write<select_layer_norm>},
    {.op = "aten.group_norm.default", .name = "select-group-norm", .apply = write<select_group_norm>},
    {.op = "aten.instance_norm.default", .name = "select-instance-norm", .apply = write<select_instance_norm>},
};

}  // namespace

std::span<const RewriteRule> kernel_rules() { return kKernelRules; }

}  // namespace argosy::executorch
