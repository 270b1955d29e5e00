#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "passes/emitter.h"

namespace argosy {

/// The node that a rule looks at: its arguments by name, and how it is replaced. Holds copies, so that it stays valid
/// while nodes are emitted.
class Match {
 public:
  explicit Match(RuleContext& context);

  bool has(std::string_view argument) const { return schema_.find_argument(argument).has_value(); }
  /// An argument that the op's schema has.
  const Argument& operator[](std::string_view argument) const;
  ValueId tensor(std::string_view argument) const { return std::get<ValueId>((*this)[argument].variant()); }
  /// nullopt: none, or computed.
  std::optional<int64_t> integer(std::string_view argument) const;
  /// A dim counted from the front; nullopt: none, computed or out of range.
  std::optional<size_t> dim(std::string_view argument, size_t rank) const;
  const std::vector<Argument>& arguments() const { return node_.arguments; }
  const OpSchema& schema() const { return schema_; }

  size_t output_count() const { return node_.outputs.size(); }
  /// The type of the first output, which may be a number.
  ValueType result_type() const { return emit.graph()[node_.outputs[0]].type; }
  /// The type of a tensor among the outputs, with the strides of a new one.
  TensorType result(size_t index = 0) const;

  /// Puts values in the place of the node's outputs, and removes it. True, for rules to return.
  bool replace(ValueId with) { return replace(std::vector<ValueId>{with}); }
  bool replace(const std::vector<ValueId>& with);
  /// Removes a node without results.
  bool erase();

  Emitter emit;

 private:
  RuleContext& context_;
  const Node node_;
  const OpSchema& schema_;
  size_t value_limit_;
};

/// What every dim of a tensor has, as numbers or values.
Result<IntList> sizes_of(Emitter& emit, ValueId tensor);
/// The tensor in that dtype; itself if it has it.
Result<ValueId> emit_cast(Emitter& emit, ValueId tensor, DType dtype);
/// A dim counted from the front; nullopt: out of range.
std::optional<size_t> wrap_dim(int64_t dim, size_t rank);
/// A list of numbers, none of them computed.
std::optional<std::vector<int64_t>> numbers(const Argument& argument);
IntList to_list(const std::vector<int64_t>& numbers);

}  // namespace argosy
