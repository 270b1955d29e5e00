#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// `steps` numbers from start to end; whole ones are rounded towards 0.
ValueId line(AtenBuilder& f, DType dtype) {
  std::optional<double> start = f.number("start"), end = f.number("end");
  std::optional<int64_t> steps = f.integer("steps");
  ValueId counts = f.node(aten::kArangeStartStep,
                          {{"start", int64_t{0}}, {"end", f.argument("steps")}, {"step", int64_t{1}}, {"dtype", dtype}},
                          dtype, f.result().shape);
  if (start && end && steps) {
    double step = *steps > 1 ? (*end - *start) / static_cast<double>(*steps - 1) : 0;
    return f.add(f.mul(counts, step), *start);
  }
  ValueId from = f.scalar(f.argument("start"), dtype), to = f.scalar(f.argument("end"), dtype);
  ValueId gaps = f.clamp(f.add(f.scalar(f.argument("steps"), dtype), -1.0), 1.0, {});
  return f.add(f.mul(counts, f.div(f.sub(to, from), gaps)), from);
}

DType computed_in(DType dtype) { return kind_of(dtype) == DTypeKind::kFloat ? dtype : DType::kF64; }

bool decompose_linspace(AtenBuilder& f) { return f.replace(line(f, computed_in(f.result().dtype))); }

/// Powers of a base, their exponents evenly apart.
bool decompose_logspace(AtenBuilder& f) {
  constexpr std::string_view kPower = aten::kPowScalar;
  ValueId exponents = line(f, computed_in(f.result().dtype));
  return f.replace(
      f.node(kPower, {{"self", f.argument("base")}, {"exponent", exponents}}, f.dtype(exponents), f.shape(exponents)));
}

/// Rows and columns of the elements of a triangle.
bool decompose_triangle_indices(AtenBuilder& f) {
  constexpr std::string_view kNonzero = aten::kNonzero;
  std::optional<int64_t> rows = f.integer("row"), columns = f.integer("col");
  if (!rows || !columns) return false;
  ValueId column = f.arange(f.integer(*columns), DType::kI64, {});
  ValueId distance = f.sub(column, f.unsqueeze(f.arange(f.integer(*rows), DType::kI64, {}), 1));
  bool is_lower = f.op() == "aten.tril_indices.default";
  ValueId is_inside = f.compare(is_lower ? "le" : "ge", distance, f.argument("offset"));
  ValueId places = f.node(kNonzero, {{"self", is_inside}}, DType::kI64, {f.result().shape[1], f.integer(2)});
  return f.replace(f.permute(places, {1, 0}));
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

/// Places of the largest among random numbers.
bool decompose_randperm(AtenBuilder& f) {
  const TensorType result = f.result();
  Argument count = f.argument("n");
  IntItem size = count.is<int64_t>() ? IntItem(*count.get_if<int64_t>()) : IntItem(f["n"]);
  ValueId shares = f.node(aten::kRand, {{"size", IntList{size}}, {"dtype", DType::kF32}}, DType::kF32, result.shape);
  std::vector<ValueId> sorted = f.nodes(aten::kTopk, {{"self", shares}, {"k", count}},
                                        {{DType::kF32, result.shape, {}}, {DType::kI64, result.shape, {}}});
  return f.replace(sorted[1]);
}

/// A race: with exponential times divided by weights, each element is first as often as its weight says. Without
/// replacement the next samples are the next in the race; with it every sample is a race of its own.
bool decompose_multinomial(AtenBuilder& f) {
  constexpr std::string_view kArgmax = aten::kArgmax;
  ValueId weights = f["self"];
  const TensorType result = f.result();
  std::optional<int64_t> samples = f.integer("num_samples");
  if (!samples || f.rank(weights) == 0) return false;
  bool is_one_race = !f.flag("replacement") || *samples == 1;
  Sizes shape = f.shape(weights);
  if (!is_one_race) shape.insert(shape.end() - 1, f.integer(*samples));
  ValueId shares =
      f.node(aten::kRand, {{"size", f.items(shape, {weights})}, {"dtype", f.dtype(weights)}}, f.dtype(weights), shape);
  ValueId length = is_one_race ? weights : f.unsqueeze(weights, -2);
  ValueId speed = f.div(length, f.neg(f.log(shares)));
  if (!is_one_race) {
    return f.replace(f.node(kArgmax, {{"self", speed}, {"dim", int64_t{-1}}}, DType::kI64, result.shape));
  }
  std::vector<ValueId> first = f.nodes(aten::kTopk, {{"self", speed}, {"k", *samples}, {"dim", int64_t{-1}}},
                                       {{f.dtype(weights), result.shape, {}}, result});
  return f.replace(first[1]);
}

constexpr RewriteRule kCreationRules[] = {
    {.op = "aten.linspace.default", .name = "decompose-linspace", .apply = write<decompose_linspace>},
    {.op = "aten.logspace.default", .name = "decompose-linspace", .apply = write<decompose_logspace>},
    {.op = "aten.tril_indices.default", .name = "decompose-triangle", .apply = write<decompose_triangle_indices>},
    {.op = "aten.triu_indices.default", .name = "decompose-triangle", .apply = write<decompose_triangle_indices>},
    {.op = "aten.randperm.default", .name = "decompose-random", .apply = write<decompose_randperm>},
    {.op = "aten.multinomial.default", .name = "decompose-random", .apply = write<decompose_multinomial>},
    {.op = "aten.rand_like.default", .name = "decompose-random", .apply = write<decompose_random_like>},
    {.op = "aten.randn_like.default", .name = "decompose-random", .apply = write<decompose_random_like>},
    {.op = "aten.randint.default", .name = "decompose-random", .apply = write<decompose_randint>},
    {.op = "aten.randint.low", .name = "decompose-random", .apply = write<decompose_randint>},
};

}  // namespace

std::span<const RewriteRule> creation() { return kCreationRules; }

}  // namespace argosy::decompose
