// Weights of integers and their scales, after the pass that stores them so.

#include <algorithm>
#include <functional>

#include "faults/bytes.h"
#include "faults/fault.h"
#include "faults/site.h"

namespace argosy::sabotage {
namespace {

constexpr std::string_view kStage = "quantize-weights";

std::byte swapped_halves(std::byte value) { return (value << 4) | (value >> 4); }

bool has_nibbles(const Weight& weight) { return weight.dtype == DType::kU4 || weight.dtype == DType::kU8; }

using WeightEdit = Result<bool> (*)(Weight& values, Weight& scales);

/// Edits the first linear layer of integers that `edit` finds fit.
Result<bool> edit_linear(Program& program, WeightEdit edit) {
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!site.is({"argosy.quantized_linear.default"})) return false;
    return edit(*site.weight(site.tensor("weight")), *site.weight(site.tensor("scales")));
  });
}

Result<bool> edit_embedding(Program& program, WeightEdit edit) {
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!site.op().starts_with("quantized_decomposed.embedding_")) return false;
    return edit(*site.weight(site.tensor("weight")), *site.weight(site.tensor("weight_scales")));
  });
}

Result<bool> swap_nibbles(Weight& values, Weight&) {
  if (!has_nibbles(values)) return false;
  ARGOSY_TRY(values.source, with_bytes(*values.source, [](std::vector<std::byte>& bytes) {
               std::ranges::transform(bytes, bytes.begin(), swapped_halves);
             }));
  return true;
}

/// Nibbles are stored plus 8: as if they had a sign instead.
Result<bool> change_sign_bit(Weight& values, Weight&) {
  if (!has_nibbles(values)) return false;
  ARGOSY_TRY(values.source, with_bytes(*values.source, [](std::vector<std::byte>& bytes) {
               for (std::byte& each : bytes) each ^= std::byte{0x88};
             }));
  return true;
}

/// Every value is one step larger.
Result<bool> move_zero(Weight& values, Weight&) {
  bool is_nibbles = has_nibbles(values);
  ARGOSY_TRY(values.source, with_bytes(*values.source, [&](std::vector<std::byte>& bytes) {
               for (std::byte& each : bytes) {
                 auto byte = std::to_integer<unsigned>(each);
                 if (is_nibbles) {
                   unsigned low = std::min(15U, (byte & 15U) + 1), high = std::min(15U, (byte >> 4) + 1);
                   each = static_cast<std::byte>(high << 4 | low);
                 } else {
                   each = static_cast<std::byte>(std::min(127, static_cast<int>(static_cast<int8_t>(byte)) + 1));
                 }
               }
             }));
  return true;
}

/// The lowest bit of every value is lost.
Result<bool> drop_lowest_bit(Weight& values, Weight&) {
  if (has_nibbles(values)) return false;
  ARGOSY_TRY(values.source, with_bytes(*values.source, [](std::vector<std::byte>& bytes) {
               for (std::byte& each : bytes) each &= std::byte{0xFE};
             }));
  return true;
}

Result<bool> turn_groups(Weight&, Weight& scales) {
  if (scales.shape.size() != 2 || scales.shape[1] < 2) return false;
  ARGOSY_TRY(scales.source, reversed(scales.source, 1));
  return true;
}

Result<bool> take_neighbours_scale(Weight&, Weight& scales) {
  ARGOSY_TRY(scales.source, shifted(scales.source, 0));
  return true;
}

/// What kernels do that add a bias before they scale.
Result<bool> scale_bias(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"argosy.quantized_linear.default"}) || !site.tensor("bias").is_valid()) return false;
    Weight *bias = site.weight(site.tensor("bias")), *scales = site.weight(site.tensor("scales"));
    if (bias == nullptr || scales->dtype != DType::kF32) return false;
    ARGOSY_TRY(std::vector<float> factors, read_floats(*scales->source));
    ARGOSY_TRY(bias->source, with_floats(*bias->source, [&](std::vector<float>& values) {
                 size_t groups = factors.size() / values.size();
                 for (size_t i = 0; i < values.size(); ++i) values[i] *= factors[i * groups];
               }));
    return true;
  });
}

Result<bool> drop_bias(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"argosy.quantized_linear.default"}) || !site.tensor("bias").is_valid()) return false;
    site.set("bias", None{});
    return true;
  });
}

// ---- layers of integers whose scales are fixed ----

constexpr std::string_view kLayerStage = "quantize-layers";
constexpr std::string_view kStaticLayer = "argosy.static_linear.default",
                           kStaticFilter = "argosy.static_convolution.default";

Result<bool> edit_static(Program& program, std::string_view op, const std::function<Result<bool>(Site&)>& edit) {
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!site.is({op})) return false;
    return edit(site);
  });
}

/// Values beyond a quarter of the range are cut off. (Another scale or zero alone is no fault: what rounds and what
/// computes read the same one.)
Result<bool> clip(Site& site, std::string_view argument) {
  site.set(argument, site.number(argument) / 4);
  return true;
}

Result<bool> shift_weight(Site& site, std::string_view argument) {
  if (!site.tensor(argument).is_valid()) return false;
  Weight* weight = site.weight(site.tensor(argument));
  ARGOSY_TRY(weight->source, shifted(weight->source, 0));
  return true;
}

Result<bool> without_bias(Site& site) {
  if (!site.tensor("bias").is_valid()) return false;
  site.set("bias", None{});
  site.set("bias_scales", None{});
  return true;
}

constexpr Fault kQuantizedFaults[] = {
    {.name = "nibble-order",
     .what = "the halves of bytes are swapped",
     .stage = kStage,
     .program = [](Program& program) { return edit_linear(program, swap_nibbles); }},
    {.name = "nibble-sign",
     .what = "nibbles have a sign instead of an offset",
     .stage = kStage,
     .program = [](Program& program) { return edit_linear(program, change_sign_bit); }},
    {.name = "zero-point",
     .what = "every integer of a weight is one more",
     .stage = kStage,
     .program = [](Program& program) { return edit_linear(program, move_zero); }},
    {.name = "lowest-bit",
     .what = "integers of a weight lack their lowest bit",
     .stage = kStage,
     .program = [](Program& program) { return edit_linear(program, drop_lowest_bit); }},
    {.name = "group-order",
     .what = "scales of groups are in the other order",
     .stage = kStage,
     .program = [](Program& program) { return edit_linear(program, turn_groups); }},
    {.name = "scale-of-neighbour",
     .what = "rows have their neighbour's scale",
     .stage = kStage,
     .program = [](Program& program) { return edit_linear(program, take_neighbours_scale); }},
    {.name = "bias-scaled",
     .what = "a bias is multiplied by its weight's scale",
     .stage = kStage,
     .program = scale_bias},
    {.name = "quantized-bias-dropped",
     .what = "a layer of integers lacks its bias",
     .stage = kStage,
     .program = drop_bias},
    {.name = "embedding-nibble-order",
     .what = "the halves of an embedding's bytes are swapped",
     .stage = kStage,
     .program = [](Program& program) { return edit_embedding(program, swap_nibbles); }},
    {.name = "embedding-zero-point",
     .what = "every integer of an embedding is one more",
     .stage = kStage,
     .program = [](Program& program) { return edit_embedding(program, move_zero); }},
    {.name = "embedding-scale",
     .what = "tokens have their neighbour's scale",
     .stage = kStage,
     .program = [](Program& program) { return edit_embedding(program, take_neighbours_scale); }},
    {.name = "static-input-clipped",
     .what = "the range of a layer's input is a quarter",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticLayer, [](Site& site) { return clip(site, "input_scale"); });
         }},
    {.name = "static-output-clipped",
     .what = "the range of a layer's output is a quarter",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticLayer, [](Site& site) { return clip(site, "output_scale"); });
         }},
    {.name = "static-scale-of-neighbour",
     .what = "rows of a layer of integers have their neighbour's scale",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticLayer, [](Site& site) { return shift_weight(site, "scales"); });
         }},
    {.name = "static-bias-of-neighbour",
     .what = "rows of a layer of integers have their neighbour's bias",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticLayer, [](Site& site) { return shift_weight(site, "bias"); });
         }},
    {.name = "static-bias-dropped",
     .what = "a layer whose scales are fixed lacks its bias",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticLayer, [](Site& site) { return without_bias(site); });
         }},
    {.name = "filter-scale-of-neighbour",
     .what = "channels of a convolution of integers have their neighbour's scale",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticFilter, [](Site& site) { return shift_weight(site, "scales"); });
         }},
    {.name = "filter-bias-of-neighbour",
     .what = "channels of a convolution of integers have their neighbour's bias",
     .stage = kLayerStage,
     .program =
         [](Program& program) {
           return edit_static(program, kStaticFilter, [](Site& site) { return shift_weight(site, "bias"); });
         }},
};

}  // namespace

std::span<const Fault> quantized_faults() { return kQuantizedFaults; }

}  // namespace argosy::sabotage
