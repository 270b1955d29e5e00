#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy {

/// The option that says so of a graph that is captured in float32.
inline constexpr std::string_view kMixedFlag = "--mixed16";

/// A way to store a model's numbers, by the name that transformers.js has for it, if it has one.
struct Variant {
  std::string_view name;
  std::string_view dtype;          // of what is not quantised, as captures have it
  std::string_view quantize = {};  // of linear layers, as --quantize takes it; empty: as the dtype has them
  bool is_mixed = false;           // f16 where that is safe; such files are called as those of fp16
};

std::span<const Variant> all_variants();
/// Null if there is none of that name.
const Variant* find_variant(std::string_view name);

/// What to ask for to get these variants at once, from what each was asked for with: a dtype that names them, and what
/// is not of one of them alone.
std::vector<std::string> options_of_variants(std::span<const std::string> names,
                                             std::span<const std::span<const std::string>> given);

/// Reads "fp32,q4", or "all": the usual ones. Each may occur once.
Result<std::vector<std::string>> read_variants(std::string_view text);

}  // namespace argosy
