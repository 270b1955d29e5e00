#include "backends/executorch/activation_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "base/text.h"

namespace argosy::executorch {
namespace {

// An attribute of a program: a line for each layer, the weight's name and four numbers.
constexpr std::string_view kRanges = "activation-ranges";

constexpr double kLeastInteger = -128, kMostInteger = 127;

void round_to(double least, double most, float& scale, int32_t& zero) {
  least = std::min(least, 0.0), most = std::max(most, 0.0);
  scale = static_cast<float>((most - least) / (kMostInteger - kLeastInteger));
  if (scale < std::numeric_limits<float>::min()) scale = 1;
  double integer = std::nearbyint(kLeastInteger - least / static_cast<double>(scale));
  zero = static_cast<int32_t>(std::clamp(integer, kLeastInteger, kMostInteger));
}

}  // namespace

StaticRounding rounding_of(const LayerRanges& ranges) {
  StaticRounding rounding;
  round_to(ranges.input_least, ranges.input_most, rounding.input_scale, rounding.input_zero);
  round_to(ranges.output_least, ranges.output_most, rounding.output_scale, rounding.output_zero);
  return rounding;
}

void note_ranges(Program& program, const ActivationRanges& ranges) {
  if (ranges.empty()) return;
  std::string& text = program.attributes[std::string(kRanges)];
  for (const auto& [name, layer] : ranges) {
    text += format("{} {} {} {} {}\n", name, format_double(layer.input_least), format_double(layer.input_most),
                   format_double(layer.output_least), format_double(layer.output_most));
  }
}

Result<ActivationRanges> noted_ranges(const Program& program) {
  ActivationRanges ranges;
  auto found = program.attributes.find(std::string(kRanges));
  if (found == program.attributes.end()) return ranges;
  std::istringstream lines(found->second);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    LayerRanges layer;
    if (!(words >> name >> layer.input_least >> layer.input_most >> layer.output_least >> layer.output_most))
      return fail(ErrorCode::kInvalidInput, format("{} gives no ranges of a layer", quoted(line)));
    ranges[name] = layer;
  }
  return ranges;
}

}  // namespace argosy::executorch
