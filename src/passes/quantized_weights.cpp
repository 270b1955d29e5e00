#include "passes/quantized_weights.h"

#include <set>
#include <sstream>

#include "base/text.h"

namespace argosy {
namespace {

// Attributes of a program that list them, a line each.
constexpr std::string_view kQuantized = "quantized-weights", kJoined = "joined-weights";

std::string_view attribute(const Program& program, std::string_view name) {
  auto found = program.attributes.find(std::string(name));
  return found == program.attributes.end() ? std::string_view() : found->second;
}

}  // namespace

std::vector<std::string> parts_of(const Program& program, const std::string& name) {
  std::istringstream lines{std::string(attribute(program, kJoined))};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string joined;
    words >> joined;
    if (joined != name) continue;
    std::vector<std::string> parts;
    for (std::string part; words >> part;) parts.push_back(std::move(part));
    return parts;
  }
  return {name};
}

void note_quantized(Program& program, const QuantizedWeight& weight) {
  for (const std::string& part : parts_of(program, weight.weight)) {
    std::string line = format("{} {} {} {}", part, weight.use, weight.encoding, weight.group);
    if (const auto& rounding = weight.rounding) {
      line += format(" {} {} {} {}", format_double(rounding->input_scale), rounding->input_zero,
                     format_double(rounding->output_scale), rounding->output_zero);
    }
    program.attributes[std::string(kQuantized)] += line + "\n";
  }
}

std::vector<QuantizedWeight> quantized_weights(const Program& program) {
  std::vector<QuantizedWeight> weights;
  std::set<std::string> seen;
  std::istringstream lines{std::string(attribute(program, kQuantized))};
  for (std::string line; std::getline(lines, line);) {
    if (!seen.insert(line).second) continue;
    QuantizedWeight& each = weights.emplace_back();
    std::istringstream words(line);
    words >> each.weight >> each.use >> each.encoding >> each.group;
    StaticRounding rounding;
    if (words >> rounding.input_scale >> rounding.input_zero >> rounding.output_scale >> rounding.output_zero)
      each.rounding = rounding;
  }
  return weights;
}

void note_joined(Program& program, std::string_view joined, const std::vector<std::string>& weights) {
  std::string& text = program.attributes[std::string(kJoined)];
  text += joined;
  for (const std::string& each : weights) text += " " + each;
  text += "\n";
}

}  // namespace argosy
