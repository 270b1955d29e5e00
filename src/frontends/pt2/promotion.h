#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/pt2/storage.h"
#include "ir/rewriter.h"
#include "ir/schema.h"

namespace argosy {

/// torch.result_type: tensors with dims rank above tensors without, those above plain numbers; a lower rank decides
/// only if its kind (bool < integer < float < complex) is higher.
class ResultType {
 public:
  void add_tensor(DType dtype, bool has_dims);
  void add_number(DTypeKind kind);
  /// nullopt where torch refuses to promote, or nothing was added.
  std::optional<DType> result() const;

 private:
  struct Rank {
    std::optional<DType> dtype;
    bool is_refused = false;
    void add(DType other);
  };
  Rank with_dims_, without_dims_, numbers_;
};

/// The kind of a number that an argument holds, constant or computed by the graph; nullopt if it is none.
std::optional<DTypeKind> number_kind(const Graph& graph, const Argument& argument);

/// Makes the operands of elementwise ops which promote dtypes, of cat and stack, and of functions that take integers to
/// floats, have one dtype: what torch computes with. The results stay the same bit by bit. Left alone:
///  - operands without dims next to f16 or bf16 tensors: torch computes with their value as it is, not rounded to 16
///    bits;
///  - in-place ops whose common dtype is not that of `self`: torch rounds the result into `self`;
///  - nodes whose recorded result contradicts the rules.
class Promoter {
 public:
  /// `name_value` makes a name that no value has or will have out of a wish.
  Promoter(SchemaTable& schemas, StorageAssigner& storages, std::function<std::string(std::string)> name_value);
  ~Promoter();

  /// For a node that is about to be created at the end of the graph: creates the casts it needs and puts their results
  /// into `arguments`.
  Status cast_operands(Rewriter& rewriter, OpId op, std::vector<Argument>& arguments, std::span<const NewValue> outputs,
                       LocationId location);

 private:
  struct Operands;
  Result<ValueId> cast(Rewriter& rewriter, ValueId value, DType dtype, LocationId location);

  SchemaTable& schemas_;
  StorageAssigner& storages_;
  std::function<std::string(std::string)> name_value_;
  std::vector<std::optional<Operands>> by_op_;
};

}  // namespace argosy
