#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// Which weights have the same values by the rules of a model, as its capture says ("ties" in docs/capture-format.md).
/// A checkpoint mostly holds one of them; where it holds several and these differ, each keeps its own.
class Ties {
 public:
  /// Of a JSON list of pairs; an empty text has none.
  static Result<Ties> parse(std::string_view text);
  /// Of a program that was read from a capture.
  static Result<Ties> of(const Program& program);

  /// The weight that this one and others are equal to, which may be itself; null: it is tied to nothing.
  const std::string* owner(const std::string& name) const;
  /// All of that owner, in the order in which transformers looks for one that a checkpoint holds; the owner is first.
  const std::vector<std::string>& names(const std::string& owner) const { return names_.at(owner); }

 private:
  std::map<std::string, std::string> owners_;
  std::map<std::string, std::vector<std::string>> names_;
};

}  // namespace argosy
