#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// index_put(self, (None, .., index), values): rows of one dim are written.
bool put_rows(AtenBuilder& f, int64_t dim, ValueId values, bool accumulates) {
  ValueId self = f["self"], index = f["index"];
  if (f.rank(self) == 0) return false;
  const TensorType result = f.result();
  if (f.rank(index) == 0) index = f.unsqueeze(index, 0);
  ValueList indices(f.at(self, dim) + 1);
  indices.back() = index;
  return f.replace(f.node(aten::kIndexPut,
                          {{"self", self}, {"indices", indices}, {"values", values}, {"accumulate", accumulates}},
                          result.dtype, result.shape));
}

bool decompose_index_add(AtenBuilder& f) {
  std::optional<int64_t> dim = f.integer("dim");
  if (!dim) return false;
  ValueId source = f["source"];
  if (std::optional<double> alpha = f.number("alpha"); alpha && *alpha != 1) source = f.mul(source, *alpha);
  return put_rows(f, *dim, source, true);
}

bool decompose_index_copy(AtenBuilder& f) {
  std::optional<int64_t> dim = f.integer("dim");
  return dim && put_rows(f, *dim, f["source"], false);
}

bool decompose_index_fill(AtenBuilder& f) {
  std::optional<int64_t> dim = f.integer("dim");
  return dim && put_rows(f, *dim, f.scalar(f.argument("value"), f.result().dtype), false);
}

/// Only sums have a kernel; a mean is a sum over how many there are of it.
bool decompose_scatter_reduce(AtenBuilder& f) {
  const auto* how = f.argument("reduce").get_if<std::string>();
  if (how == nullptr || (*how != "sum" && *how != "add" && *how != "mean")) return false;
  ValueId index = f["index"];
  const TensorType result = f.result();
  if (*how == "mean" && kind_of(result.dtype) != DTypeKind::kFloat) return false;
  bool leaves_out_self = f.knows("include_self") && !f.flag("include_self");
  auto sum = [&](ValueId self, ValueId source) {
    if (leaves_out_self) {
      constexpr std::string_view kScatterValue =
          "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor";
      self =
          f.node(kScatterValue, {{"self", self}, {"dim", f.argument("dim")}, {"index", index}, {"value", int64_t{0}}},
                 result.dtype, result.shape);
    }
    return f.node(aten::kScatterAdd, {{"self", self}, {"dim", f.argument("dim")}, {"index", index}, {"src", source}},
                  result.dtype, result.shape);
  };
  ValueId self = f["self"];
  ValueId source = f.knows("src") ? f["src"] : f.full(f.shape(index), f.argument("value"), result.dtype, {index});
  ValueId total = sum(self, source);
  if (*how != "mean") return f.replace(total);
  ValueId counts =
      sum(f.full(result.shape, 1.0, result.dtype, {self}), f.full(f.shape(index), 1.0, result.dtype, {index}));
  return f.replace(f.div(total, counts));
}

/// How often each number from 0 on occurs, or what it weighs in all.
bool decompose_bincount(AtenBuilder& f) {
  const TensorType result = f.result();
  std::optional<int64_t> bins = result.shape.size() == 1 ? result.shape[0].as_integer() : std::nullopt;
  if (!bins) return false;
  ValueId is_member = f.compare("eq", f.unsqueeze(f["self"], 1), f.arange(f.integer(*bins), DType::kI64, {}));
  if (!f.has("weights")) return f.replace(f.sum(is_member, {0}, false, DType::kI64));
  return f.replace(f.sum(f.mul(f.cast(is_member, result.dtype), f.unsqueeze(f["weights"], 1)), {0}, false));
}

/// The kernel wants one dtype.
bool cast_scattered(AtenBuilder& f) {
  const TensorType result = f.result();
  ValueId source = f["src"];
  if (f.dtype(source) == result.dtype) return false;
  return f.replace(f.node(
      f.schema().text,
      {{"self", f["self"]}, {"dim", f.argument("dim")}, {"index", f["index"]}, {"src", f.cast(source, result.dtype)}},
      result.dtype, result.shape));
}

/// The kernel wants one dtype; a negative index is no index to it.
bool cast_put(AtenBuilder& f) {
  const TensorType result = f.result();
  ValueId values = f["values"];
  if (f.dtype(values) == result.dtype) return false;
  return f.replace(f.node(aten::kIndexPut,
                          {{"self", f["self"]},
                           {"indices", f.argument("indices")},
                           {"values", f.cast(values, result.dtype)},
                           {"accumulate", f.argument("accumulate")}},
                          result.dtype, result.shape));
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.index_add.default", .name = "decompose-index-add", .apply = write<decompose_index_add>},
    {.op = "aten.index_copy.default", .name = "decompose-index-copy", .apply = write<decompose_index_copy>},
    {.op = "aten.index_fill.int_Scalar", .name = "decompose-index-fill", .apply = write<decompose_index_fill>},
    {.op = "aten.scatter.reduce", .name = "decompose-scatter", .apply = write<decompose_scatter_reduce>},
    {.op = "aten.scatter.value_reduce", .name = "decompose-scatter", .apply = write<decompose_scatter_reduce>},
    {.op = "aten.scatter_reduce.two", .name = "decompose-scatter", .apply = write<decompose_scatter_reduce>},
    {.op = "aten.bincount.default", .name = "decompose-bincount", .apply = write<decompose_bincount>},
    {.op = "aten.scatter.src", .name = "cast-scattered", .apply = write<cast_scattered>},
    {.op = "aten.scatter_add.default", .name = "cast-scattered", .apply = write<cast_scattered>},
    {.op = "aten.index_put.default", .name = "cast-put", .apply = write<cast_put>},
};

}  // namespace

std::span<const RewriteRule> scatter() { return kRules; }

}  // namespace argosy::decompose
