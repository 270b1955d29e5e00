#include "backends/executorch/bounds.h"

#include <limits>

#include "base/text.h"

namespace argosy::executorch {
namespace {

std::string name_of(const Component& component, SymExpr symbol) {
  auto found = component.dim_names.find(std::string(symbol.symbol_name()));
  return found == component.dim_names.end() ? std::string(symbol.symbol_name()) : found->second;
}

}  // namespace

Status set_bounds(const Component& component, const std::map<std::string, int64_t>& largest) {
  for (SymExpr symbol : component.symbols->symbols()) {
    if (!symbol.is_integer_valued()) continue;
    std::string name = name_of(component, symbol);
    auto asked = largest.find(name);
    if (asked == largest.end()) continue;
    SymRange range = component.symbols->range(symbol);
    if (asked->second < range.min) {
      return fail(ErrorCode::kInvalidInput,
                  format("{} is to be at most {}, but the model needs at least {}", name, asked->second, range.min));
    }
    range.max = std::min(range.max, asked->second);
    component.symbols->set_range(symbol, range);
  }
  return {};
}

Result<std::vector<int32_t>> largest_sizes(const Component& component, const TensorType& type) {
  std::vector<int32_t> sizes;
  for (SymExpr size : type.shape) {
    int64_t bound = size.is_valid() ? component.symbols->range(size).max : SymRange::kNoMax;
    if (bound > std::numeric_limits<int32_t>::max()) {
      std::string text = size.is_valid() ? component.symbols->to_text(size) : "?";
      return fail(ErrorCode::kInvalidInput, format("a dim of size {} has no upper bound", text),
                  "give one with --shape NAME=MAX or --max_seq_len");
    }
    sizes.push_back(static_cast<int32_t>(bound));
  }
  return sizes;
}

bool is_dynamic(const TensorType& type) {
  for (SymExpr size : type.shape) {
    if (!size.is_valid() || !size.as_integer()) return true;
  }
  return false;
}

}  // namespace argosy::executorch
