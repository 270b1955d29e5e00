#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/extremes.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

constexpr Synonym kIndexingSynonyms[] = {
    {"aten._unsafe_index.Tensor", aten::kIndexTensor},
    {"aten._unsafe_index_put.default", aten::kIndexPut},
};

constexpr auto kIndexingSynonymRules = synonym_rules(kIndexingSynonyms);

/// What is written has the dtype of what it is written into.
bool cast_written(AtenBuilder& f, std::string_view name) {
  DType dtype = f.result().dtype;
  if (f.dtype(f[name]) == dtype) return false;
  return f.replace(f.repeated({{name, f.cast(f[name], dtype)}}));
}

bool cast_put(AtenBuilder& f) { return cast_written(f, "values"); }
bool cast_scattered(AtenBuilder& f) { return cast_written(f, "src"); }

/// A reduction that includes what it writes into: scatter_add, or scatter_reduce of a product or an extreme. If the op
/// does not include it, it is set to the neutral element before. A mean is a sum divided by the count.
bool normalise_scatter(AtenBuilder& f) {
  const auto* given = f.argument("reduce").get_if<std::string>();
  ValueId self = f["self"], index = f["index"];
  const TensorType result = f.result();
  if (given == nullptr) return false;
  const std::string how = *given == "add" ? "sum" : *given == "multiply" ? "prod" : *given;
  bool leaves_out_self = f.knows("include_self") && !f.flag("include_self"), is_mean = how == "mean";
  bool is_named_so = f.op() == "aten.scatter_reduce.two";
  if (is_named_so && how != "sum" && !is_mean && !leaves_out_self && f.dtype(f["src"]) == result.dtype) return false;
  if (is_mean && kind_of(result.dtype) != DTypeKind::kFloat) return false;
  auto scatter = [&](ValueId into, ValueId source) {
    const std::vector<AtenBuilder::Named> place = {{"dim", f.argument("dim")}, {"index", index}};
    auto node = [&](std::string_view schema, std::vector<AtenBuilder::Named> arguments) {
      arguments.insert(arguments.end(), place.begin(), place.end());
      arguments.push_back({"self", into});
      return f.node(schema, std::move(arguments), result.dtype, result.shape);
    };
    bool is_sum = how == "sum" || is_mean;
    if (leaves_out_self) {
      Argument neutral = is_sum          ? Argument(int64_t{0})
                         : how == "prod" ? Argument(int64_t{1})
                                         : extreme_of(result.dtype, how == "amin");
      into = node(aten::kScatterValue, {{"value", std::move(neutral)}});
    }
    if (is_sum) return node(aten::kScatterAdd, {{"src", source}});
    return node(aten::kScatterReduceTwo, {{"src", source}, {"reduce", how}});
  };
  ValueId source = f.knows("src") ? f.cast(f["src"], result.dtype)
                                  : f.full(f.shape(index), f.argument("value"), result.dtype, {index});
  ValueId total = scatter(self, source);
  if (!is_mean) return f.replace(total);
  ValueId once = f.full(result.shape, 1.0, result.dtype, {self});
  ValueId each = f.full(f.shape(index), 1.0, result.dtype, {index});
  ValueId counts = scatter(once, each);
  return f.replace(f.div(total, counts));
}

/// Windows of a tensor that has dims, counted from the front.
bool normalise_unfold(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.rank(x) == 0) return f.replace(f.unsqueeze(x, 0));
  std::optional<int64_t> dim = f.integer("dimension");
  if (!dim || *dim >= 0) return false;
  return f.replace(f.repeated({{"dimension", *dim + static_cast<int64_t>(f.rank(x))}}));
}

/// Without dims, the flattened tensor is rolled.
bool flatten_roll(AtenBuilder& f) {
  ValueId x = f["self"];
  const auto* dims = f.argument("dims").get_if<IntList>();
  if (dims == nullptr || !dims->empty()) return false;
  if (f.rank(x) == 0) return f.replace(x);
  ValueId flat = f.reshape(x, {f.symbols().mul(f.shape(x))});
  ValueId rolled = f.node(f.schema().text, {{"self", flat}, {"shifts", f.argument("shifts")}, {"dims", to_list({0})}},
                          f.dtype(x), f.shape(flat));
  return f.replace(f.reshape(rolled, f.shape(x), {x}));
}

constexpr RewriteRule kIndexingRules[] = {
    {.op = "aten.index_put.default", .name = "cast-written", .apply = write<cast_put>},
    {.op = "aten.scatter.src", .name = "cast-written", .apply = write<cast_scattered>},
    {.op = "aten.scatter_add.default", .name = "cast-written", .apply = write<cast_scattered>},
    {.op = "aten.scatter.reduce", .name = "normalise-scatter", .apply = write<normalise_scatter>},
    {.op = "aten.scatter.value_reduce", .name = "normalise-scatter", .apply = write<normalise_scatter>},
    {.op = "aten.scatter_reduce.two", .name = "normalise-scatter", .apply = write<normalise_scatter>},
    {.op = "aten.unfold.default", .name = "normalise-unfold", .apply = write<normalise_unfold>},
    {.op = "aten.roll.default", .name = "flatten-roll", .apply = write<flatten_roll>},
};

}  // namespace

std::span<const RewriteRule> indexing_rules() { return kIndexingRules; }
std::span<const RewriteRule> indexing_synonyms() { return kIndexingSynonymRules; }

}  // namespace argosy
