#pragma once

#include "base/result.h"
#include "io/json.h"
#include "ir/graph.h"

namespace argosy {

/// Writes arguments as the graph JSON has them: objects of one member that names the kind, {"as_int": 3}.
class ArgumentWriter {
 public:
  explicit ArgumentWriter(JsonWriter& json) : json_(json) {}

  /// {"as_tensor": {"name": …}} and the like, for a value of the graph.
  void value(const Graph& graph, ValueId id);
  /// {"name": …}
  void name(const Graph& graph, ValueId id);
  /// An argument that is no value, no graph and no list.
  Status constant(const Argument& argument);
  /// Any list, or a constant.
  Status list_or_constant(const Graph& graph, const Argument& argument);

 private:
  void int_list(const Graph& graph, const IntList& list);
  void value_list(const Graph& graph, const ValueList& values);
  /// Numbers of one kind, some of them symbolic; or lists of lists.
  Status mixed_list(const Graph& graph, const ArgumentList& list);
  Status nested_list(const Graph& graph, const ArgumentList& list, const char* key);

  JsonWriter& json_;
};

}  // namespace argosy
