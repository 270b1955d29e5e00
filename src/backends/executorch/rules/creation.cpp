#include "backends/executorch/rules/families.h"
#include "backends/executorch/rules/formula.h"
#include "backends/executorch/rules/schemas.h"
#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

/// `steps` numbers from start to end.
bool decompose_linspace(Formula& f) {
  const TensorType result = f.match.result();
  if (kind_of(result.dtype) != DTypeKind::kFloat) return false;
  std::optional<double> start = f.number("start"), end = f.number("end");
  std::optional<int64_t> steps = f.match.integer("steps");
  ValueId counts = f.node(
      aten::kArange, {{"start", int64_t{0}}, {"end", f.match["steps"]}, {"step", int64_t{1}}, {"dtype", result.dtype}},
      result.dtype, result.shape);
  if (start && end && steps) {
    double step = *steps > 1 ? (*end - *start) / static_cast<double>(*steps - 1) : 0;
    return f.replace(f.add(f.mul(counts, step), *start));
  }
  ValueId from = f.scalar(f.match["start"], result.dtype), to = f.scalar(f.match["end"], result.dtype);
  ValueId gaps = f.clamp(f.add(f.scalar(f.match["steps"], result.dtype), -1.0), 1.0, {});
  return f.replace(f.add(f.mul(counts, f.div(f.sub(to, from), gaps)), from));
}

/// Numbers of the shape of a tensor, or of a range.
bool decompose_random_like(Formula& f) {
  const TensorType result = f.match.result();
  bool is_normal = f.match.schema().name == "aten.randn_like.default";
  ValueId self = f["self"];
  return f.replace(f.node(is_normal ? schemas::kRandn : schemas::kRand,
                          {{"size", f.items(result.shape, {self})}, {"dtype", result.dtype}}, result.dtype,
                          result.shape));
}

bool decompose_randint(Formula& f) {
  const TensorType result = f.match.result();
  std::optional<int64_t> low = f.match.has("low") ? f.match.integer("low") : std::optional<int64_t>(0),
                         high = f.match.integer("high");
  const auto* size = f.match["size"].get_if<IntList>();
  if (!low || !high || size == nullptr) return false;
  ValueId share = f.node(schemas::kRand, {{"size", *size}, {"dtype", DType::kF32}}, DType::kF32, result.shape);
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

std::span<const RewriteRule> creation_rules() { return kRules; }

}  // namespace argosy::executorch
