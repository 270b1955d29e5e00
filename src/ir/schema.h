#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/argument.h"

namespace argosy {

/// Types of ATen's schema language, as far as they tell arguments apart. kAny and kGraph are ours, for higher-order ops
/// and arithmetic on sizes.
enum class SchemaKind : uint8_t {
  kTensor,
  kScalar,
  kInt,
  kSymInt,
  kFloat,
  kSymFloat,
  kBool,
  kSymBool,
  kString,
  kDType,
  kDevice,
  kLayout,
  kMemoryFormat,
  kGenerator,
  kStream,
  kStorage,
  kQScheme,
  kDimname,
  kGraph,
  kAny,
  kOther,  // a class or another type that no argument of an exported graph has; only None fits
};

struct SchemaType {
  SchemaKind kind = SchemaKind::kOther;
  bool is_optional = false;         // int?, Tensor[]?
  bool is_list = false;             // int[2], Tensor[]
  bool has_optional_items = false;  // Tensor?[]
  int list_size = -1;               // int[2]: a single int may stand for it; -1: none given
  int list_depth = 1;               // int[][] is 2
  friend bool operator==(const SchemaType&, const SchemaType&) = default;
};

struct SchemaArgument {
  std::string name;
  SchemaType type;
  std::optional<Argument> default_value;
  bool is_keyword_only = false;
  std::string alias;        // "a" of Tensor(a), Tensor(a!) or Tensor(a -> *); empty: no alias
  bool is_written = false;  // Tensor(a!)
};

struct SchemaReturn {
  std::string name;  // often empty
  SchemaType type;
  std::string alias;
  bool is_written = false;
};

/// Signature of one op overload, parsed from its ATen schema text.
struct OpSchema {
  std::string name;  // "aten.add.Tensor": namespace.op.overload
  std::string text;  // "aten::add.Tensor(Tensor self, …) -> Tensor", as it came
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaReturn> returns;
  bool is_variadic = false;  // ends in "..." (arguments beyond the last are positional)

  std::optional<uint32_t> find_argument(std::string_view argument) const;
  bool writes_any_argument() const;
};

/// Reads a schema as torch prints it: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
/// Names without "::" (our own for operators on sizes: "_operator.add(SymInt a, SymInt b) -> SymInt") are taken as they
/// are.
Result<OpSchema> parse_schema(std::string_view text);

/// "aten::add.Tensor" -> "aten.add.Tensor", "aten::relu" -> "aten.relu.default", "_operator.add" -> itself.
std::string op_name_of(std::string_view qualified_name);

/// The schemas a program knows. Append-only; ids and references stay valid. Copyable.
class SchemaTable {
 public:
  /// Holds builtin_schemas() from the start.
  SchemaTable();
  /// Adds a schema. The same text again is fine; another text for a known op is an error.
  Result<OpId> add(OpSchema schema);
  Result<OpId> add(std::string_view text);
  std::optional<OpId> find(std::string_view op_name) const;
  const OpSchema& operator[](OpId id) const { return schemas_[id.index]; }
  size_t size() const { return schemas_.size(); }

 private:
  std::deque<OpSchema> schemas_;
  std::unordered_map<std::string, OpId> by_name_;
};

/// Schemas of what torch.export graphs call beside registered ops: Python operators on sizes, torch.sym_…, math
/// functions and higher-order ops. One text each.
std::span<const std::string_view> builtin_schemas();

}  // namespace argosy
