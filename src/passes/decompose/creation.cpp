#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// `steps` numbers from start to end.
bool decompose_linspace(AtenBuilder& f) {
  const TensorType result = f.result();
  if (kind_of(result.dtype) != DTypeKind::kFloat) return false;
  std::optional<double> start = f.number("start"), end = f.number("end");
  std::optional<int64_t> steps = f.integer("steps");
  ValueId counts =
      f.node(aten::kArange,
             {{"start", int64_t{0}}, {"end", f.argument("steps")}, {"step", int64_t{1}}, {"dtype", result.dtype}},
             result.dtype, result.shape);
  if (start && end && steps) {
    double step = *steps > 1 ? (*end - *start) / static_cast<double>(*steps - 1) : 0;
    return f.replace(f.add(f.mul(counts, step), *start));
  }
  ValueId from = f.scalar(f.argument("start"), result.dtype), to = f.scalar(f.argument("end"), result.dtype);
  ValueId gaps = f.clamp(f.add(f.scalar(f.argument("steps"), result.dtype), -1.0), 1.0, {});
  return f.replace(f.add(f.mul(counts, f.div(f.sub(to, from), gaps)), from));
}

/// Numbers of the shape of a tensor, or of a range.
bool decompose_random_like(AtenBuilder& f) {
  const TensorType result = f.result();
  bool is_normal = f.op() == "aten.randn_like.default";
  ValueId self = f["self"];
  return f.replace(f.node(is_normal ? aten::kRandn : aten::kRand,
                          {{"size", f.items(result.shape, {self})}, {"dtype", result.dtype}}, result.dtype,
                          result.shape));
}

bool decompose_randint(AtenBuilder& f) {
  const TensorType result = f.result();
  std::optional<int64_t> low = f.knows("low") ? f.integer("low") : std::optional<int64_t>(0), high = f.integer("high");
  const auto* size = f.argument("size").get_if<IntList>();
  if (!low || !high || size == nullptr) return false;
  ValueId share = f.node(aten::kRand, {{"size", *size}, {"dtype", DType::kF32}}, DType::kF32, result.shape);
  ValueId whole = f.floor(f.mul(share, static_cast<double>(*high - *low)));
  return f.replace(f.add_integer(f.cast(whole, result.dtype), *low));
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.linspace.default", .name = "decompose-linspace", .apply = write<decompose_linspace>},
    {.op = "aten.rand_like.default", .name = "decompose-random", .apply = write<decompose_random_like>},
    {.op = "aten.randn_like.default", .name = "decompose-random", .apply = write<decompose_random_like>},
    {.op = "aten.randint.default", .name = "decompose-random", .apply = write<decompose_randint>},
    {.op = "aten.randint.low", .name = "decompose-random", .apply = write<decompose_randint>},
};

}  // namespace

std::span<const RewriteRule> creation() { return kRules; }

}  // namespace argosy::decompose
