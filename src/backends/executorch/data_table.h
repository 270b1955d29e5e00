#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/executorch/document.h"

namespace argosy::executorch {

/// The data of a program, shared by its methods: equal bytes are kept once, whatever they are called.
class DataTable {
 public:
  /// The key under which the bytes of that source are found: `name`, unless a source of an equal recipe has one
  /// already, or the name is taken by other bytes. Bytes for another use have a key of their own: data that a delegate
  /// packs is dropped by its key.
  std::string add(std::string_view name, TensorSourcePtr source, std::string_view use = "");
  std::vector<NamedData> take() { return std::move(data_); }

 private:
  std::vector<NamedData> data_;
  std::map<std::string, std::string> key_by_recipe_;
  std::map<std::string, int> taken_;
};

}  // namespace argosy::executorch
