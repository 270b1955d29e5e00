#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "frontends/pt2/json_field.h"
#include "ir/graph.h"
#include "ir/schema.h"

namespace argosy {

/// The values that a graph's JSON has defined so far, by the names it uses for them.
struct ValueScope {
  const Graph& graph;
  std::unordered_map<std::string_view, ValueId> by_name = {};  // keys point into the JSON document

  /// The value of that name; an error if it is not defined (yet).
  Result<ValueId> find(const JsonField& field, std::string_view name) const;
};

/// Reads one Argument union of the graph JSON and normalises it to what the op's schema asks for: an int becomes a
/// float or a list where the schema says so, enums are renumbered, names become ids.
class ArgumentReader {
 public:
  using ReadSubgraph = std::function<Result<GraphId>(const JsonField& as_graph)>;
  ArgumentReader(const ValueScope& scope, ReadSubgraph read_subgraph)
      : scope_(scope), read_subgraph_(std::move(read_subgraph)) {}

  Result<Argument> read(const JsonField& argument, const SchemaType& type) const;
  /// Without a schema's opinion: what the union's tag says.
  Result<Argument> read_untyped(const JsonField& argument) const;

  /// The same for an operand of a comparison of sizes: integers beyond 64 bits, which torch writes for "unbounded",
  /// become the largest or smallest there is.
  Result<Argument> read_saturated(const JsonField& argument) const;

  /// Whether the union holds a number, constant or symbolic: what may stand where the schema says Tensor.
  static bool is_number(const JsonField& argument);

 private:
  Result<Argument> read_item(const JsonField& argument, std::string_view tag, const JsonField& inner,
                             const SchemaType& type) const;
  Result<Argument> read_list(const JsonField& argument, std::string_view tag, const JsonField& inner,
                             const SchemaType& type) const;
  Result<Argument> read_int_list(const JsonField& list, std::string_view tag) const;
  Result<Argument> read_value_list(const JsonField& list, std::string_view tag) const;
  Result<Argument> read_mixed_list(const JsonField& list, std::string_view tag) const;
  Result<Argument> read_symbolic(const JsonField& symbolic, std::string_view constant_tag) const;
  Result<ValueId> read_tensor_name(const JsonField& tensor) const;

  const ValueScope& scope_;
  ReadSubgraph read_subgraph_;
};

}  // namespace argosy
