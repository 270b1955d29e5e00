#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// Patches that neither overlap nor leave anything out are rows of a linear layer.
bool as_linear(AtenBuilder& f, ValueId input, ValueId weight) {
  for (size_t i = 2; i < 5; ++i) {
    if (f.shape(input)[i] != f.shape(weight)[i]) return false;
  }
  std::optional<int64_t> outputs = f.size(weight, 0).as_integer();
  SymExpr inner = f.symbols().mul(Sizes(f.shape(weight).begin() + 1, f.shape(weight).end()));
  if (!outputs || !inner.as_integer()) return false;
  ValueId rows = f.reshape(input, {f.size(input, 0), inner});
  ValueId matrix = f.reshape(weight, {f.size(weight, 0), inner});
  ValueId product = f.node(aten::kLinear, {{"input", rows}, {"weight", matrix}, {"bias", f.argument("bias")}},
                           f.dtype(input), {f.size(input, 0), f.size(weight, 0)});
  return f.replace(f.reshape(product, f.result().shape));
}

/// Kernels have two dims at most: the first of three becomes a sum over its taps.
bool decompose_conv3d(AtenBuilder& f) {
  ValueId input = f["input"], weight = f["weight"];
  auto stride = f.per_dim("stride", 3), padding = f.per_dim("padding", 3), dilation = f.per_dim("dilation", 3);
  std::optional<int64_t> taps = f.rank(weight) == 5 ? f.size(weight, 2).as_integer() : std::nullopt;
  if (f.rank(input) != 5 || !stride || !padding || !dilation || !taps) return false;
  bool is_plain = *padding == std::vector<int64_t>{0, 0, 0} && f.integer("groups") == 1;
  if (is_plain && as_linear(f, input, weight)) return true;

  const Sizes result = f.result().shape;
  SymExpr steps = result[2], images = f.symbols().mul(f.size(input, 0), steps);
  if ((*padding)[0] != 0) {
    Sizes padded = f.shape(input);
    padded[2] = f.symbols().add(padded[2], f.integer(2 * (*padding)[0]));
    input =
        f.node(aten::kConstantPadNd, {{"self", input}, {"pad", to_list({0, 0, 0, 0, (*padding)[0], (*padding)[0]})}},
               f.dtype(input), padded);
  }
  auto last = [](const std::vector<int64_t>& all) { return IntList{all[1], all[2]}; };
  ValueId total;
  for (int64_t tap = 0; tap < *taps; ++tap) {
    ValueId part = f.slice(input, 2, tap * (*dilation)[0], steps, (*stride)[0]);
    part = f.permute(part, {0, 2, 1, 3, 4});
    const ValueId by_step = part;
    part = f.reshape(part, {images, f.size(input, 1), f.size(input, 3), f.size(input, 4)}, {input});
    ValueId product = f.node(aten::kConv2d,
                             {{"input", part},
                              {"weight", f.select(weight, 2, tap)},
                              {"bias", tap == 0 ? f.argument("bias") : Argument(None{})},
                              {"stride", last(*stride)},
                              {"padding", last(*padding)},
                              {"dilation", last(*dilation)},
                              {"groups", f.argument("groups")}},
                             f.dtype(input), {images, f.size(weight, 0), result[3], result[4]});
    total = tap == 0 ? product : f.add(total, product);
    if (tap + 1 == *taps) {
      total = f.reshape(total, {result[0], steps, result[1], result[3], result[4]}, {by_step, total});
    }
  }
  return f.replace(f.permute(total, {0, 2, 1, 3, 4}));
}

/// The first of three dims as a sum over its taps, each of which writes every `stride`th image.
bool decompose_conv_transpose3d(AtenBuilder& f) {
  constexpr std::string_view kConvTranspose2d = aten::kConvTranspose2dInput;
  ValueId input = f["input"], weight = f["weight"];
  auto stride = f.per_dim("stride", 3), padding = f.per_dim("padding", 3), dilation = f.per_dim("dilation", 3),
       extra = f.per_dim("output_padding", 3);
  std::optional<int64_t> taps = f.rank(weight) == 5 ? f.size(weight, 2).as_integer() : std::nullopt;
  if (f.rank(input) != 5 || !stride || !padding || !dilation || !extra || !taps) return false;
  const Sizes result = f.result().shape;
  const DType dtype = f.dtype(input);
  const SymExpr steps = f.size(input, 2), images = f.symbols().mul(f.size(input, 0), steps);
  ValueId by_step = f.permute(input, {0, 2, 1, 3, 4});
  ValueId flat = f.reshape(by_step, {images, f.size(input, 1), f.size(input, 3), f.size(input, 4)}, {input});
  auto last = [](const std::vector<int64_t>& all) { return IntList{all[1], all[2]}; };
  // Dims are [image, step, channel, row, column] until the end.
  auto padded = [&](ValueId x, int64_t dim, int64_t before, int64_t behind) {
    Sizes shape = f.shape(x);
    SymExpr& size = shape[static_cast<size_t>(dim)];
    size = f.symbols().add(size, f.integer(before + behind));
    std::vector<int64_t> pad(2 * (f.rank(x) - static_cast<size_t>(dim)), 0);
    pad[pad.size() - 2] = before;
    pad[pad.size() - 1] = behind;
    return f.node(aten::kConstantPadNd, {{"self", x}, {"pad", to_list(pad)}}, dtype, shape);
  };
  ValueId total;
  for (int64_t tap = 0; tap < *taps; ++tap) {
    ValueId part = f.node(kConvTranspose2d,
                          {{"input", flat},
                           {"weight", f.select(weight, 2, tap)},
                           {"stride", last(*stride)},
                           {"padding", last(*padding)},
                           {"output_padding", last(*extra)},
                           {"groups", f.argument("groups")},
                           {"dilation", last(*dilation)}},
                          dtype, {images, result[1], result[3], result[4]});
    Sizes wide = {result[0], steps, result[1], result[3], result[4]};
    part = f.reshape(part, wide, {by_step, part});
    if (int64_t step = (*stride)[0]; step > 1) {
      part = padded(f.unsqueeze(part, 2), 2, 0, step - 1);
      wide[1] = f.symbols().mul(steps, f.integer(step));
      part = f.reshape(part, wide, {by_step, part});
      part = f.slice(part, 1, 0, f.symbols().sub(wide[1], f.integer(step - 1)));
    }
    part = padded(part, 1, tap * (*dilation)[0], (*taps - 1 - tap) * (*dilation)[0] + (*extra)[0]);
    total = tap == 0 ? part : f.add(total, part);
  }
  total = f.slice(total, 1, (*padding)[0], result[2], 1, {input});
  if (f.has("bias")) total = f.add(total, f.reshape(f["bias"], {result[1], f.one(), f.one()}));
  return f.replace(f.permute(total, {0, 2, 1, 3, 4}));
}

constexpr RewriteRule kConvolutionRules[] = {
    {.op = "aten.conv3d.default", .name = "decompose-conv3d", .apply = write<decompose_conv3d>},
    {.op = "aten.conv_transpose3d.input", .name = "decompose-conv3d", .apply = write<decompose_conv_transpose3d>},
};

}  // namespace

std::span<const RewriteRule> convolution() { return kConvolutionRules; }

}  // namespace argosy::decompose
