#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// ---- variance ----

struct VarianceRow {
  std::string_view prefix;
  std::string_view schema;
};

constexpr VarianceRow kVariances[] = {
    {"aten.std.", aten::kStdCorrection},
    {"aten.std_mean.", aten::kStdMeanCorrection},
    {"aten.var.", aten::kVarCorrection},
    {"aten.var_mean.", aten::kVarMeanCorrection},
};

Argument correction_of(const AtenBuilder& f) {
  if (f.knows("unbiased")) return int64_t{f.flag("unbiased") ? 1 : 0};
  return f.has("correction") ? f.argument("correction") : Argument(int64_t{1});
}

/// A variance over a number of elements that is not known stays whole, in the most general form.
bool normalise_variance(AtenBuilder& f, const std::vector<int64_t>& dims) {
  if (f.op().ends_with(".correction")) return false;
  const VarianceRow* row =
      std::ranges::find_if(kVariances, [&](const VarianceRow& each) { return f.op().starts_with(each.prefix); });
  return row != std::end(kVariances) && f.become(row->schema, {{"self", f["self"]},
                                                               {"dim", to_list(dims)},
                                                               {"correction", correction_of(f)},
                                                               {"keepdim", f.flag("keepdim")}});
}

/// The squared distances to the mean, summed and divided by the number of elements less the correction.
bool decompose_variance(AtenBuilder& f) {
  ValueId self = f["self"];
  if (kind_of(f.dtype(self)) != DTypeKind::kFloat) return false;
  std::vector<int64_t> dims = f.dims("dim", f.rank(self));
  std::ranges::sort(dims);
  bool keeps_dims = f.flag("keepdim");
  SymExpr count = f.one();
  for (int64_t dim : dims) count = f.symbols().mul(count, f.size(self, dim));
  const Argument asked = correction_of(f);
  const double* real = asked.get_if<double>();
  const int64_t* whole = asked.get_if<int64_t>();
  std::optional<int64_t> elements = count.as_integer();
  if ((real == nullptr && whole == nullptr) || (!elements && (whole == nullptr || *whole != 0))) {
    return normalise_variance(f, dims);
  }
  double correction = real != nullptr ? *real : static_cast<double>(*whole);
  ValueId mean = f.mean(self, dims, true);
  ValueId distance = f.sub(self, mean);
  ValueId square = f.mul(distance, distance), variance;
  if (correction == 0) {
    variance = f.mean(square, dims, keeps_dims);
  } else {
    double divisor = std::max(0.0, static_cast<double>(*elements) - correction);
    variance = f.div(f.sum(square, dims, keeps_dims), divisor);
  }
  if (f.op().starts_with("aten.std")) variance = f.sqrt(variance);
  if (f.output_count() == 1) return f.replace(variance);
  return f.replace({variance, keeps_dims ? mean : f.squeeze(mean, dims)});
}

// ---- products ----

bool decompose_outer(AtenBuilder& f) {
  if (f.rank(f["self"]) != 1 || f.rank(f["vec2"]) != 1) return false;
  ValueId column = f.unsqueeze(f["self"], 1);
  return f.replace(f.mul(column, f.unsqueeze(f["vec2"], 0)));
}

/// One half, weighed by the sigmoid of the other.
bool decompose_glu(AtenBuilder& f) {
  std::optional<size_t> dim = f.dim("dim", f.rank(f["self"]));
  std::optional<int64_t> half = dim ? f.result().shape[*dim].as_integer() : std::nullopt;
  if (!half) return false;
  std::vector<ValueId> halves = f.split(f["self"], {*half, *half}, static_cast<int64_t>(*dim));
  return f.replace(f.mul(halves[0], f.sigmoid(halves[1])));
}

// ---- convolutions ----

// With padding as numbers.

/// Padding by name: "valid" is none, "same" is what keeps the sizes; where that is odd, one more behind.
bool normalise_padding(AtenBuilder& f) {
  ValueId input = f["input"];
  const Sizes kernel = f.shape(f["weight"]);
  if (kernel.size() < 3 || f.rank(input) + 1 < kernel.size()) return false;
  const size_t dims = kernel.size() - 2;
  const auto* mode = f.argument("padding").get_if<std::string>();
  std::optional<std::vector<int64_t>> dilation = f.per_dim("dilation", dims);
  if (mode == nullptr || !dilation) return false;
  std::vector<int64_t> padding(dims, 0), behind(2 * dims, 0);
  for (size_t i = 0; i < dims && *mode == "same"; ++i) {
    std::optional<int64_t> size = kernel[i + 2].as_integer();
    if (!size) return false;
    int64_t total = (*dilation)[i] * (*size - 1);
    padding[i] = total / 2;
    behind[2 * (dims - 1 - i) + 1] = total % 2;
  }
  if (std::ranges::count(behind, 1) > 0) input = f.pad(input, behind);
  return f.become(f.data<std::string_view>(), {{"input", input},
                                               {"weight", f.argument("weight")},
                                               {"bias", f.argument("bias")},
                                               {"stride", f.argument("stride")},
                                               {"padding", to_list(padding)},
                                               {"dilation", f.argument("dilation")},
                                               {"groups", f.argument("groups")}});
}

/// Padding with a number.
bool normalise_pad(AtenBuilder& f) {
  if (f.argument("mode") != Argument(std::string("constant"))) return false;
  Argument value = f.has("value") ? f.argument("value") : Argument(int64_t{0});
  return f.become(aten::kConstantPadNd, {{"self", f["self"]}, {"pad", f.argument("pad")}, {"value", std::move(value)}});
}

// ---- order ----

bool decompose_argsort(AtenBuilder& f) {
  ValueId self = f["self"];
  std::vector<AtenBuilder::Named> arguments = {
      {"self", self}, {"dim", f.argument("dim")}, {"descending", f.argument("descending")}};
  if (f.knows("stable")) arguments.emplace_back("stable", f.argument("stable"));
  TensorType values{f.dtype(self), f.shape(self), {}};
  return f.replace(
      f.nodes(f.knows("stable") ? aten::kSortStable : aten::kSort, std::move(arguments), {values, f.result()})[1]);
}

// ---- softmax of decomposed graphs ----

bool rename_softmax(AtenBuilder& f) {
  DType wanted = f.result().dtype;
  Argument dtype = wanted == f.dtype(f["self"]) ? Argument(None{}) : wanted;
  return f.become(f.data<std::string_view>(),
                  {{"self", f["self"]}, {"dim", f.argument("dim")}, {"dtype", std::move(dtype)}});
}

constexpr RewriteRule kCompositesRules[] = {
    {.op = "aten.std.correction", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.std.default", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.std.dim", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.std_mean.correction", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.std_mean.default", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.std_mean.dim", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.var.correction", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.var.default", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.var.dim", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.var_mean.correction", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.var_mean.default", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.var_mean.dim", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.outer.default", .name = "decompose-outer", .apply = write<decompose_outer>},
    {.op = "aten.glu.default", .name = "decompose-glu", .apply = write<decompose_glu>},
    {.op = "aten.conv1d.padding",
     .name = "normalise-padding",
     .apply = write<normalise_padding>,
     .user_data = &aten::kConv1d},
    {.op = "aten.conv2d.padding",
     .name = "normalise-padding",
     .apply = write<normalise_padding>,
     .user_data = &aten::kConv2d},
    {.op = "aten.conv3d.padding",
     .name = "normalise-padding",
     .apply = write<normalise_padding>,
     .user_data = &aten::kConv3d},
    {.op = "aten.pad.default", .name = "normalise-pad", .apply = write<normalise_pad>},
    {.op = "aten.argsort.default", .name = "decompose-argsort", .apply = write<decompose_argsort>},
    {.op = "aten.argsort.stable", .name = "decompose-argsort", .apply = write<decompose_argsort>},
    {.op = "aten._softmax.default",
     .name = "normalise-softmax",
     .apply = write<rename_softmax>,
     .user_data = &aten::kSoftmaxInt},
    {.op = "aten._log_softmax.default",
     .name = "normalise-softmax",
     .apply = write<rename_softmax>,
     .user_data = &aten::kLogSoftmaxInt},
};

}  // namespace

std::span<const RewriteRule> composite_rules() { return kCompositesRules; }

}  // namespace argosy
