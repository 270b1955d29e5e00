#include "driver/variants.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.h"

namespace argosy {
namespace {

constexpr Variant kVariants[] = {
    {"fp32", "float32"},
    {"fp16", "float16"},
    {"q4", "float32", "int4"},
    {"q4f16", "float16", "int4"},
    {"q8", "float32", "int8"},
    {"mixed16", "float32", "", true},
    {"int8", "float32", "dynamic-int8"},
    {"uint8", "float32", "dynamic-uint8"},
    {"bnb4", "float32", "nf4"},
};
constexpr size_t kUsual = 5;  // what people publish; mixed16 has the names of fp16 in a bundle

std::string known_names() {
  std::vector<std::string> names;
  for (const Variant& each : kVariants) names.emplace_back(each.name);
  return join(names, ", ");
}

}  // namespace

std::span<const Variant> all_variants() { return kVariants; }

const Variant* find_variant(std::string_view name) {
  const auto* found = std::ranges::find(kVariants, name, &Variant::name);
  return found == std::end(kVariants) ? nullptr : found;
}

std::vector<std::string> options_of_variants(std::span<const std::string> names,
                                             std::span<const std::span<const std::string>> given) {
  auto is_block = [](std::string_view option) { return option.starts_with("--quantize-block="); };
  std::set<std::string_view> blocks;  // those that are usual differ between schemes
  for (std::span<const std::string> each : given)
    std::ranges::copy_if(each, std::inserter(blocks, blocks.end()), is_block);
  std::vector<std::string> options = {format("--dtype={}", join({names.begin(), names.end()}, ","))};
  for (const std::string& option : given.front()) {
    if (is_block(option) && blocks.size() > 1) continue;
    if (option.starts_with("--dtype=") || option.starts_with("--quantize=") || option == kMixedFlag) continue;
    options.push_back(option);
  }
  return options;
}

Result<std::vector<std::string>> read_variants(std::string_view text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const Variant& each : all_variants().first(kUsual)) names.emplace_back(each.name);
    return names;
  }
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string name(text.substr(begin, end - begin));
    begin = end + 1;
    if (find_variant(name) == nullptr) {
      return fail(ErrorCode::kInvalidInput, format("{} is no variant", quoted(name)),
                  format("there are {}, or all", known_names()));
    }
    if (std::ranges::find(names, name) != names.end())
      return fail(ErrorCode::kInvalidInput, format("{} is asked for twice", name));
    names.push_back(name);
  }
  return names;
}

}  // namespace argosy
