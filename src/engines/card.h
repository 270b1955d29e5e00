#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/engine.h"

namespace argosy::engines {

inline constexpr std::string_view kCardFile = "README.md";

/// What of a model card is known only when everything is laid out.
struct CardFacts {
  std::string argosy_version;
  std::string check;               // in words
  std::vector<std::string> notes;  // a line each, besides those of the plan
  std::string picture = {};        // a file of the bundle: quality of its variants against size; may be empty
};

/// README.md of a bundle: where it came from and by which options, under which licence, what its files are and how to
/// run it; below that the model's own card, if it has one. The head is metadata that the Hub reads. Of the head of the
/// model's own card it has licence, languages, what the model is for and what it is based on, as plain texts.
Result<std::string> model_card(const SourceModel& model, const Engine& engine, const BundlePlan& plan,
                               const CardFacts& facts);

}  // namespace argosy::engines
