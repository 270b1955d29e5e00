#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "io/json.h"
#include "ir/program.h"

namespace argosy {

/// Turns the metadata of nodes into interned locations. Most nodes share theirs with their neighbours, so texts are
/// looked up before they are taken apart.
class LocationReader {
 public:
  explicit LocationReader(LocationTable& locations) : locations_(locations) {}
  /// An invalid id if the metadata says nothing. Never fails: what cannot be understood is left out.
  LocationId read(JsonView metadata);

 private:
  LocationTable& locations_;
  std::unordered_map<std::string, LocationId> known_;
};

/// Module path, class and call index of torch's nn_module_stack: "key,path,class;key,path,class", outermost first.
void read_module_stack(std::string_view stack, ModelLocation& location);
/// File and line of the last frame of a Python stack trace that is not torch's own code (else of the last).
void read_stack_trace(std::string_view trace, ModelLocation& location);

}  // namespace argosy
