#include "base/text.h"
#include "passes/aten_builder.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// The form that takes sizes or factors, each as a list.
bool normalise_resize(AtenBuilder& f) {
  const TensorType result = f.result();
  DoubleList factors;
  for (std::string_view name : {"scales", "scales_d", "scales_h", "scales_w"}) {
    if (!f.knows(name)) continue;
    if (std::optional<double> factor = f.has(name) ? f.number(name) : std::nullopt) factors.push_back(*factor);
  }
  bool has_factors = factors.size() + 2 == result.shape.size(), aligns = f.knows("align_corners");
  const std::string& op = f.op();
  std::string schema = format("aten::{}.vec(Tensor input, SymInt[]? output_size, {}float[]? scale_factors) -> Tensor",
                              op.substr(5, op.rfind('.') - 5), aligns ? "bool align_corners, " : "");
  std::vector<AtenBuilder::Named> arguments = {
      {"input", f["self"]},
      {"output_size", has_factors ? Argument(None{}) : f.argument("output_size")},
      {"scale_factors", has_factors ? Argument(factors) : Argument(None{})},
  };
  if (aligns) arguments.push_back({"align_corners", f.argument("align_corners")});
  return f.replace(f.node(schema, std::move(arguments), result.dtype, result.shape));
}

/// Of images or of volumes.
bool normalise_grid_sampler(AtenBuilder& f) {
  const TensorType result = f.result();
  const size_t dims = f.rank(f["input"]) - 2;
  if (dims != 2 && dims != 3) return false;
  std::string schema = format(
      "aten::grid_sampler_{}d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
      "-> Tensor",
      dims);
  return f.replace(f.node(schema,
                          {{"input", f["input"]},
                           {"grid", f["grid"]},
                           {"interpolation_mode", f.argument("interpolation_mode")},
                           {"padding_mode", f.argument("padding_mode")},
                           {"align_corners", f.argument("align_corners")}},
                          result.dtype, result.shape));
}

constexpr RewriteRule kResizeRules[] = {
    {.op = "aten.grid_sampler.default", .name = "normalise-grid-sampler", .apply = write<normalise_grid_sampler>},
    {.op = "aten._upsample_bicubic2d_aa.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten._upsample_bilinear2d_aa.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten._upsample_nearest_exact1d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten._upsample_nearest_exact2d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten._upsample_nearest_exact3d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_bicubic2d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_bilinear2d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_linear1d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_nearest1d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_nearest2d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_nearest3d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
    {.op = "aten.upsample_trilinear3d.default", .name = "normalise-resize", .apply = write<normalise_resize>},
};

}  // namespace

std::span<const RewriteRule> resize_rules() { return kResizeRules; }

}  // namespace argosy
