#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/executorch/document.h"
#include "tensor/dtype.h"

namespace argosy::executorch {

/// Adds values and instructions to a method. Equal constants are one value, equal kernels one row.
class MethodValues {
 public:
  explicit MethodValues(Method& method) : method_(method) {}

  ValueIndex add(Value value);
  ValueIndex none();
  ValueIndex integer(int64_t value);
  ValueIndex real(double value);
  ValueIndex boolean(bool value);
  ValueIndex text(std::string_view value);
  /// A number that an instruction computes; the instruction decides on its kind.
  ValueIndex computed_number() { return add(int64_t{0}); }
  ValueIndex integers(std::vector<ValueIndex> items);
  ValueIndex tensors(std::vector<ValueIndex> items, bool has_none) {
    return add(TensorValues{std::move(items), has_none});
  }
  /// How kernels take a dtype.
  ValueIndex dtype(DType dtype);

  /// Calls a kernel, "aten::add.out". `arguments` are as KernelCall has them.
  void call(std::string_view kernel, std::vector<ValueIndex> arguments);
  void add_instruction(Instruction instruction) { method_.instructions.push_back(std::move(instruction)); }

  Method& method() { return method_; }
  Tensor& tensor(ValueIndex index) { return method_.tensor(index); }
  /// The tensor whose bytes a tensor has: itself, or what it is an alias of.
  ValueIndex root_of(ValueIndex index) const;

 private:
  Method& method_;
  ValueIndex none_ = kNoValue;
  std::map<int64_t, ValueIndex> integers_;
  std::map<uint64_t, ValueIndex> reals_;  // by bits
  std::map<bool, ValueIndex> booleans_;
  std::map<std::string, ValueIndex, std::less<>> texts_;
  std::map<std::vector<ValueIndex>, ValueIndex> lists_;
  std::map<std::string, uint32_t, std::less<>> kernels_;
};

/// The number of an element type in ExecuTorch's files and kernels; nullopt: it has none.
std::optional<int8_t> scalar_type(DType dtype);

}  // namespace argosy::executorch
