#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "ir/argument.h"
#include "ir/program.h"
#include "ir/schema.h"

namespace argosy {

// What the printer and the parser of IR text agree on. Internal to ir.

/// Lists in lists are read and verified to this depth.
inline constexpr int kMaxListDepth = 16;

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '.'; }
/// Names after a sigil (%x, @model.norm.weight) may be of letters, digits, '_' and '.'; others are quoted.
bool is_bare_name(std::string_view name);
/// Words (names without a sigil) do not start with a digit or '.' either.
bool is_bare_word(std::string_view name);

/// The text in double quotes, so that unquote() gives back the same bytes. Valid UTF-8 stays readable.
void append_quoted(std::string& out, std::string_view text);
/// The word itself, or quoted where it has to be.
void append_word(std::string& out, std::string_view name);
/// A double so that it reads back to the same bits: NaNs with a payload or a sign are "nan:0x…".
std::string exact_double(double value);

/// Kinds of list arguments: "ints[1, 2]". A list without a name before '[' is of the kind its schema type implies.
enum class ListKind : uint8_t { kInts, kBools, kDoubles, kStrings, kValues, kNested };
ListKind implied_list(const SchemaType& type);
/// Type of the items of a nested list.
SchemaType item_type(const SchemaType& type);

std::string_view name_of(ListKind kind);
std::string_view name_of(TensorLayout layout);
std::string_view name_of(MemoryFormat kind);
std::string_view name_of(WeightKind kind);
std::string_view name_of(OutputKind kind);

std::optional<ListKind> list_kind_from(std::string_view name);
std::optional<TensorLayout> layout_from(std::string_view name);
std::optional<MemoryFormat> memory_format_from(std::string_view name);
std::optional<WeightKind> weight_kind_from(std::string_view name);
std::optional<OutputKind> output_kind_from(std::string_view name);

/// An argument as it stands in IR text. `type` is what the schema asks for, {kAny} where there is no schema. Values are
/// named by `graph`; a null graph or a dead id gives text that the parser refuses.
void append_argument(std::string& out, const Graph* graph, const Argument& argument, const SchemaType& type);

/// The type of a value as it stands in IR text.
void append_type(std::string& out, const SymContext& symbols, const ValueType& type);
void append_expression(std::string& out, const SymContext& symbols, SymExpr expression);

/// The signature that a component has whose text gives none: inputs named as their values, user outputs without names.
std::vector<InputSpec> default_inputs(const Graph& entry);
std::vector<OutputSpec> default_outputs(const Graph& entry);

/// What set_range() has to be given for a symbol; nullopt where the symbol's assumptions say as much.
std::optional<SymRange> stated_range(const SymContext& symbols, SymExpr symbol);

}  // namespace argosy
