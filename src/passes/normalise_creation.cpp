#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/in_place_ops.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// Every tensor filled with one number is full.default, which says its dtype. An empty one may hold anything: zeros.
bool fill(AtenBuilder& f, const Argument& value) {
  IntList sizes;
  if (f.knows("size")) {
    sizes = std::get<IntList>(f.argument("size").variant());
  } else if (f.knows("self")) {
    sizes = f.items(f["self"]);
  }
  return f.become(aten::kFull, {{"size", std::move(sizes)}, {"fill_value", value}, {"dtype", f.result().dtype}});
}

bool fill_zeros(AtenBuilder& f) { return fill(f, int64_t{0}); }
bool fill_ones(AtenBuilder& f) { return fill(f, int64_t{1}); }
bool fill_scalar(AtenBuilder& f) { return fill(f, f.argument("value")); }
bool fill_value(AtenBuilder& f) { return fill(f, f.argument(f.knows("s") ? "s" : "fill_value")); }
bool normalise_full(AtenBuilder& f) { return !f.has("dtype") && fill_value(f); }

/// copy and fill of decomposed graphs: another tensor, in the dtype and shape of the one that it replaces.
bool replace_whole(AtenBuilder& f) { return f.replace(in_form_of(f, f[f.knows("src") ? "src" : "value"], f["self"])); }

/// arange has a start, a step and a dtype.
bool normalise_arange(AtenBuilder& f) {
  if (f.knows("step") && f.has("dtype")) return false;
  Argument start = f.knows("start") ? f.argument("start") : Argument(int64_t{0});
  Argument step = f.knows("step") ? f.argument("step") : Argument(int64_t{1});
  return f.become(aten::kArangeStartStep, {{"start", std::move(start)},
                                           {"end", f.argument("end")},
                                           {"step", std::move(step)},
                                           {"dtype", f.result().dtype}});
}

/// 1 where row and column are the same number.
bool decompose_eye(AtenBuilder& f) {
  const Sizes shape = f.result().shape;
  if (shape.size() != 2) return false;
  auto line = [&](size_t dim, std::string_view count) {
    ValueId range =
        f.node(aten::kArangeStartStep,
               {{"start", int64_t{0}}, {"end", f.argument(count)}, {"step", int64_t{1}}, {"dtype", DType::kI64}},
               DType::kI64, {shape[dim]});
    return f.unsqueeze(range, dim == 0 ? 1 : 0);
  };
  ValueId rows = line(0, "n");
  return f.replace(f.compare("eq", rows, line(1, f.knows("m") ? "m" : "n")));
}

constexpr RewriteRule kCreationRules[] = {
    {.op = "aten.empty.memory_format", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.empty_like.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.empty_permuted.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.empty_strided.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.new_empty.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.new_empty_strided.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.new_zeros.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.zeros.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.zeros_like.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.new_ones.default", .name = "normalise-fill", .apply = write<fill_ones>},
    {.op = "aten.ones.default", .name = "normalise-fill", .apply = write<fill_ones>},
    {.op = "aten.ones_like.default", .name = "normalise-fill", .apply = write<fill_ones>},
    {.op = "aten.full.default", .name = "normalise-fill", .apply = write<normalise_full>},
    {.op = "aten.full_like.default", .name = "normalise-fill", .apply = write<fill_value>},
    {.op = "aten.new_full.default", .name = "normalise-fill", .apply = write<fill_value>},
    {.op = "aten.scalar_tensor.default", .name = "normalise-fill", .apply = write<fill_value>},
    {.op = "aten.copy.default", .name = "normalise-fill", .apply = write<replace_whole>},
    {.op = "aten.fill.Scalar", .name = "normalise-fill", .apply = write<fill_scalar>},
    {.op = "aten.fill.Tensor", .name = "normalise-fill", .apply = write<replace_whole>},
    {.op = "aten.zero.default", .name = "normalise-fill", .apply = write<fill_zeros>},
    {.op = "aten.arange.default", .name = "normalise-arange", .apply = write<normalise_arange>},
    {.op = "aten.arange.start", .name = "normalise-arange", .apply = write<normalise_arange>},
    {.op = "aten.arange.start_step", .name = "normalise-arange", .apply = write<normalise_arange>},
    {.op = "aten.eye.default", .name = "decompose-eye", .apply = write<decompose_eye>},
    {.op = "aten.eye.m", .name = "decompose-eye", .apply = write<decompose_eye>},
};

}  // namespace

std::span<const RewriteRule> creation_rules() { return kCreationRules; }

}  // namespace argosy
