#include "driver/dim_limits.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"

namespace argosy {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<DimLimit> read_limit(std::string_view text) {
  size_t dots = text.find("..");
  auto min = read_size(text.substr(0, dots));
  if (!min) return std::nullopt;
  if (dots == std::string_view::npos) return DimLimit{*min, *min};
  std::string_view last = text.substr(dots + 2);
  if (last.empty()) return DimLimit{*min, std::nullopt};
  auto max = read_size(last);
  if (!max || *max < *min) return std::nullopt;
  return DimLimit{*min, *max};
}

std::string text_of(const DimLimit& limit) {
  if (limit.is_fixed()) return format("{}", limit.min);
  return limit.max ? format("{}..{}", limit.min, *limit.max) : format("{}..", limit.min);
}

}  // namespace

std::optional<int64_t> read_size(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string ranges_above_one(std::string_view shape) {
  auto limits = read_dim_limits(shape);
  if (!limits) return std::string(shape);
  std::vector<std::string> chosen;
  for (const auto& [name, limit] : *limits) {
    if (!limit.is_fixed() && limit.min > 1) chosen.push_back(format("{}={}", name, text_of(limit)));
  }
  return join(chosen, ",");
}

Result<std::map<std::string, DimLimit>> read_dim_limits(std::string_view shape) {
  std::map<std::string, DimLimit> limits;
  while (!shape.empty()) {
    std::string_view item = shape.substr(0, shape.find(','));
    shape.remove_prefix(std::min(shape.size(), item.size() + 1));
    item = trimmed(item);
    if (item.empty()) continue;
    size_t equals = std::min(item.find('='), item.size());
    std::string name(trimmed(item.substr(0, equals)));
    auto limit = read_limit(trimmed(item.substr(std::min(equals + 1, item.size()))));
    if (!limit || name.empty()) {
      return fail(ErrorCode::kInvalidInput, format("{} is not a size of a dim", quoted(item)),
                  "write batch=1,sequence=1..2048");
    }
    if (!limits.emplace(name, *limit).second)
      return fail(ErrorCode::kInvalidInput, format("--shape names the dim {} twice", quoted(name)), "name it once");
  }
  return limits;
}

Status check_dim_names(const std::map<std::string, DimLimit>& limits, const std::vector<std::string>& known) {
  for (const auto& [name, limit] : limits) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return fail(ErrorCode::kInvalidInput, format("the model has no dim {} that --shape could narrow", quoted(name)),
                known.empty() ? std::string("none of its dims varies") : format("it has {}", join(known, ", ")));
  }
  return {};
}

std::vector<std::string> dim_names(const Program& program) {
  std::set<std::string> names;
  for (const Component& component : program.components) {
    for (const auto& [symbol, name] : component.dim_names) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Status check_dim_limits(const Program& program, const std::map<std::string, DimLimit>& limits) {
  ARGOSY_TRY_STATUS(check_dim_names(limits, dim_names(program)));
  for (const Component& component : program.components) {
    for (SymExpr symbol : component.symbols->symbols()) {
      auto name = component.dim_names.find(std::string(symbol.symbol_name()));
      auto limit = name == component.dim_names.end() ? limits.end() : limits.find(name->second);
      if (limit == limits.end()) continue;
      SymRange range = component.symbols->range(symbol);
      if (limit->second.min <= range.max && limit->second.max.value_or(SymRange::kNoMax) >= range.min) continue;
      return fail(ErrorCode::kInvalidInput,
                  format("--shape {}={} leaves the dim no size: in {} it is {}", limit->first, text_of(limit->second),
                         component.name,
                         range.max == SymRange::kNoMax ? format("{} or more", range.min)
                                                       : format("{} to {}", range.min, range.max)),
                  "give a size in that range");
    }
  }
  return {};
}

}  // namespace argosy
