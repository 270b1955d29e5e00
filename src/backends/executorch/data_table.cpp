#include "backends/executorch/data_table.h"

#include "base/text.h"

namespace argosy::executorch {

std::string DataTable::add(std::string_view name, TensorSourcePtr source, std::string_view use) {
  // Literals of one content and two types have two recipes, so types need not be part of the question.
  auto [found, is_new] = key_by_recipe_.try_emplace(format("{}{}", use, source->recipe()));
  if (!is_new) return found->second;
  std::string key(name);
  for (int& count = taken_[std::string(name)]; count++ > 0;) {
    key = format("{}#{}", name, count);
    if (taken_.try_emplace(key, 1).second) break;
  }
  found->second = key;
  data_.push_back({key, std::move(source)});
  return key;
}

}  // namespace argosy::executorch
