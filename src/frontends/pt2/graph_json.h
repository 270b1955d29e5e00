#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontends/schema_library.h"
#include "io/json.h"
#include "ir/program.h"

namespace argosy {

/// Bytes; larger files of a graph are refused.
inline constexpr uint64_t kMaxGraph = uint64_t{512} << 20;

/// Finds or adds a weight of the program that a graph names in its signature.
using BindWeight = std::function<Result<WeightId>(WeightKind kind, std::string_view name, DType dtype,
                                                  const std::vector<int64_t>& shape)>;

struct GraphJsonOptions {
  const SchemaLibrary* schemas = nullptr;  // never null
  BindWeight bind_weight;
  /// What torch's JSON drops (docs/capture-format.md, "companion"); an invalid view: not known.
  JsonView companion = {};
  /// Gets every unknown op, once each. May be null.
  Diagnostics* diagnostics = nullptr;
};

/// Reads torch's serialised ExportedProgram (schema 8.x) as a component of `program`, which gets the schemas and
/// locations it needs; arguments are normalised and promotion is made explicit. The JSON may be hostile. Linear in its
/// size.
Result<Component> read_graph_json(JsonView root, std::string_view name, Program& program,
                                  const GraphJsonOptions& options);

}  // namespace argosy
