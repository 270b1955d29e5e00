#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// Sizes that a user allows a dim.
struct DimLimit {
  int64_t min = 0;
  std::optional<int64_t> max;  // absent: no bound

  bool is_fixed() const { return max == min; }
};

/// "batch=1,sequence=1..2048,past_sequence=0..": by the names that users see.
Result<std::map<std::string, DimLimit>> read_dim_limits(std::string_view shape);

/// The ranges of "batch=1,sequence=1024..4096" that begin above one: they change what is traced, not only how much
/// memory is reserved. What cannot be read is kept, for the later reader to refuse.
std::string ranges_above_one(std::string_view shape);

/// A number that is not negative, and nothing behind it.
std::optional<int64_t> read_size(std::string_view text);

/// Refuses names that are not among `known`, which the error lists.
Status check_dim_names(const std::map<std::string, DimLimit>& limits, const std::vector<std::string>& known);

/// The names of all dims of a program that may vary, sorted.
std::vector<std::string> dim_names(const Program& program);

/// Refuses a name that the program's dims lack, and a range that leaves a dim no size.
Status check_dim_limits(const Program& program, const std::map<std::string, DimLimit>& limits);

}  // namespace argosy
