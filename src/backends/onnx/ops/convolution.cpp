#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// One number for each spatial dim; a single one stands for all.
Ints spread(Ints values, size_t count) {
  if (values.size() == 1) values.resize(count, values.front());
  return values;
}

/// Both sides of each dim alike, all begins before all ends.
Ints both_sides(const Ints& padding) {
  Ints pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

// conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1,
//        SymInt groups=1) -> Tensor; conv1d, conv3d alike
// conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0,
//                        SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor
// convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
//             bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
void emit_convolution(const NodeTranslator& e, const Translation& row) {
  size_t spatial = static_cast<size_t>(e.rank("weight")) - 2;
  bool is_batched = e.rank("input") == e.rank("weight");
  bool is_transposed = row.onnx_op == "ConvTranspose" || (row.onnx_op.empty() && e.flag("transposed"));
  Ref input = is_batched ? e.tensor("input") : e.unsqueeze(e.tensor("input"), {0});
  Refs inputs = {input, e.tensor("weight")};
  if (e.has("bias")) inputs.push_back(e.tensor("bias"));
  Attributes attributes = {
      {"strides", spread(e.integers("stride"), spatial)},
      {"pads", both_sides(spread(e.integers("padding"), spatial))},
      {"dilations", spread(e.integers("dilation"), spatial)},
      {"group", e.integer("groups")},
  };
  if (is_transposed) attributes.push_back({"output_padding", spread(e.integers("output_padding"), spatial)});
  Ref result = e.node(is_transposed ? "ConvTranspose" : "Conv", std::move(inputs), std::move(attributes));
  e.yield(is_batched ? result : e.squeeze(result, {0}));
}

/// Pooling wants a batch in front.
Ref batched(const NodeTranslator& e, int64_t spatial) {
  return e.rank("self") == spatial + 1 ? e.unsqueeze(e.tensor("self"), {0}) : e.tensor("self");
}

Ref unbatched(const NodeTranslator& e, Ref value, int64_t spatial) {
  return e.rank("self") == spatial + 1 ? e.squeeze(value, {0}) : value;
}

Attributes window(const NodeTranslator& e, size_t spatial) {
  Ints kernel = spread(e.integers("kernel_size"), spatial);
  Ints stride = e.integers("stride");
  return {
      {"kernel_shape", kernel},
      {"strides", stride.empty() ? kernel : spread(stride, spatial)},
      {"pads", both_sides(spread(e.integers("padding"), spatial))},
      {"ceil_mode", int64_t{e.flag("ceil_mode") ? 1 : 0}},
  };
}

// max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,
//            bool ceil_mode=False) -> Tensor; with indices they are left out unless asked for
void emit_max_pool(const NodeTranslator& e, const Translation& row) {
  int64_t spatial = row.onnx_op[0] - '0';
  Attributes attributes = window(e, static_cast<size_t>(spatial));
  attributes.push_back({"dilations", spread(e.integers("dilation"), static_cast<size_t>(spatial))});
  if (e.result_count() == 1) {
    return e.yield(unbatched(e, e.node("MaxPool", {batched(e, spatial)}, std::move(attributes)), spatial));
  }
  Refs results = e.builder().node("MaxPool", {batched(e, spatial)}, 2, std::move(attributes));
  // ONNX counts through the whole tensor, torch through each plane.
  SymExpr plane = e.elements(e.shape("self").last(static_cast<size_t>(spatial)));
  Ref index = e.node("Mod", {results[1], e.without_dims(e.size(plane))});
  e.yield(Refs{unbatched(e, results[0], spatial), unbatched(e, index, spatial)});
}

// avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False,
//            bool count_include_pad=True, int? divisor_override=None) -> Tensor
void emit_avg_pool(const NodeTranslator& e, const Translation& row) {
  int64_t spatial = row.onnx_op[0] - '0';
  if (e.has("divisor_override")) e.decline("divisor_override of a pooling");
  Attributes attributes = window(e, static_cast<size_t>(spatial));
  attributes.push_back({"count_include_pad", int64_t{e.flag("count_include_pad") ? 1 : 0}});
  e.yield(unbatched(e, e.node("AveragePool", {batched(e, spatial)}, std::move(attributes)), spatial));
}

// upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
// upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
void emit_resize(const NodeTranslator& e, const Translation& row) {
  bool is_vec = row.op.ends_with(".vec");
  std::string_view input = is_vec ? "input" : "self";
  Attributes attributes;
  bool aligns = e.has("align_corners") && e.flag("align_corners");
  std::string mode(row.onnx_op);
  if (mode == "exact") {
    attributes = {{"mode", std::string("nearest")},
                  {"coordinate_transformation_mode", std::string("half_pixel")},
                  {"nearest_mode", std::string("round_prefer_ceil")}};
  } else if (mode == "nearest") {
    attributes = {{"mode", mode},
                  {"coordinate_transformation_mode", std::string("asymmetric")},
                  {"nearest_mode", std::string("floor")}};
  } else {
    bool antialiases = row.op.find("_aa") != std::string_view::npos;
    attributes = {{"mode", mode},
                  {"coordinate_transformation_mode", std::string(aligns ? "align_corners" : "half_pixel")},
                  {"cubic_coeff_a", antialiases ? -0.5F : -0.75F}};
    if (antialiases) {
      attributes.push_back({"antialias", int64_t{1}});
      attributes.push_back({"exclude_outside", int64_t{1}});
    }
  }
  Ref value = e.tensor(input);
  auto rank = static_cast<size_t>(e.rank(input));
  std::string_view factors = "scale_factors";
  if (is_vec && e.has(factors) && !aligns) {
    const DoubleList* list = e.argument(factors).get_if<DoubleList>();
    std::vector<float> scales(rank, 1.0F);
    for (size_t i = 0; i < list->size(); ++i) scales[rank - list->size() + i] = static_cast<float>((*list)[i]);
    return e.yield(e.node("Resize", {value, {}, e.builder().floats(scales)}, std::move(attributes)));
  }
  Ref sizes = e.sizes(e.result().shape);
  e.yield(e.node("Resize", {value, {}, {}, sizes}, std::move(attributes)));
}

// grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
void emit_grid_sampler(const NodeTranslator& e, const Translation&) {
  constexpr std::string_view kOld[] = {"bilinear", "nearest", "bicubic"}, kNew[] = {"linear", "nearest", "cubic"},
                             kPadding[] = {"zeros", "border", "reflection"};
  auto mode = static_cast<size_t>(e.integer("interpolation_mode"));
  if (e.rank("input") != 4 && e.opset() < 20) e.decline("sampling a volume needs opset 20", "export with --opset 20");
  e.yield(e.node("GridSample", {e.tensor("input"), e.tensor("grid")},
                 {{"mode", std::string(e.opset() < 20 ? kOld[mode] : kNew[mode])},
                  {"padding_mode", std::string(kPadding[static_cast<size_t>(e.integer("padding_mode"))])},
                  {"align_corners", int64_t{e.flag("align_corners") ? 1 : 0}}}));
}

constexpr Translation kConvolution[] = {
    {"aten.conv1d.default", emit_convolution, "Conv"},
    {"aten.conv2d.default", emit_convolution, "Conv"},
    {"aten.conv3d.default", emit_convolution, "Conv", "Conv"},
    {"aten.conv_transpose1d.default", emit_convolution, "ConvTranspose"},
    {"aten.conv_transpose2d.input", emit_convolution, "ConvTranspose"},
    {"aten.conv_transpose3d.input", emit_convolution, "ConvTranspose", "ConvTranspose"},
    {"aten.convolution.default", emit_convolution},
    {"aten.max_pool1d.default", emit_max_pool, "1", "MaxPool"},
    {"aten.max_pool2d.default", emit_max_pool, "2"},
    {"aten.max_pool3d.default", emit_max_pool, "3", "MaxPool"},
    {"aten.max_pool2d_with_indices.default", emit_max_pool, "2"},
    {"aten.avg_pool1d.default", emit_avg_pool, "1", "AveragePool"},
    {"aten.avg_pool2d.default", emit_avg_pool, "2"},
    {"aten.avg_pool3d.default", emit_avg_pool, "3", "AveragePool"},
    {"aten.upsample_linear1d.vec", emit_resize, "linear", "Resize"},
    {"aten.upsample_bilinear2d.vec", emit_resize, "linear"},
    {"aten.upsample_trilinear3d.vec", emit_resize, "linear", "Resize"},
    {"aten._upsample_bilinear2d_aa.vec", emit_resize, "linear", "Resize"},
    {"aten.upsample_bicubic2d.vec", emit_resize, "cubic", "Resize"},
    {"aten._upsample_bicubic2d_aa.vec", emit_resize, "cubic", "Resize"},
    {"aten.upsample_nearest1d.vec", emit_resize, "nearest", "Resize"},
    {"aten.upsample_nearest2d.vec", emit_resize, "nearest"},
    {"aten.upsample_nearest3d.vec", emit_resize, "nearest", "Resize"},
    {"aten._upsample_nearest_exact2d.vec", emit_resize, "exact", "Resize"},
    {"aten.grid_sampler_2d.default", emit_grid_sampler},
    {"aten.grid_sampler_3d.default", emit_grid_sampler},
};

}  // namespace

std::span<const Translation> convolution_translations() { return kConvolution; }

}  // namespace argosy::onnx
