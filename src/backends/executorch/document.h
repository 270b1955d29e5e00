#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "passes/quantized_weights.h"
#include "tensor/dtype.h"
#include "tensor/source.h"

namespace argosy::executorch {

// A program for ExecuTorch's runtime as plain structs: what a .pte file says, before it is bytes. Indices are of the
// method's `values` unless said otherwise.

/// Index of a value of a method.
using ValueIndex = int32_t;
inline constexpr ValueIndex kNoValue = -1;

/// Where the bytes of a tensor are.
enum class Storage : uint8_t {
  kPlanned,   // in an arena; the bytes may be reused when the tensor is no longer read
  kConstant,  // read-only data of the file
  kState,     // in an arena, in bytes of its own, which keep their values from call to call
};

struct Tensor {
  DType dtype = DType::kF32;
  std::vector<int32_t> sizes;  // in the order of memory (row-major); where they vary, the largest
  bool is_dynamic = false;     // whether sizes vary from call to call
  Storage storage = Storage::kPlanned;
  std::string key;                 // of a constant, and of a state that begins with a value: the name of its data
  ValueIndex alias_of = kNoValue;  // planned: uses the bytes of that (earlier) tensor
  // Set by plan_memory().
  uint32_t arena = 0;   // 1: what one call computes, 2: states
  uint64_t offset = 0;  // bytes
};

struct NoValue {};
/// Numbers, each a value of its own: so that a list can hold computed sizes.
struct IntValues {
  std::vector<ValueIndex> items;
};
struct TensorValues {
  std::vector<ValueIndex> items;  // kNoValue: None, if `has_none`
  bool has_none = false;          // whether it is a list of optional tensors
};
using Value = std::variant<NoValue, int64_t, bool, double, std::string, Tensor, IntValues, std::vector<double>,
                           std::vector<bool>, TensorValues>;

/// "aten::add", "out".
struct KernelName {
  std::string name, overload;
  friend bool operator==(const KernelName&, const KernelName&) = default;
};

/// Arguments as the kernel's schema has them, defaults included, then results: an out tensor stands twice, as argument
/// and as result.
struct KernelCall {
  uint32_t kernel = 0;  // index of the method's kernels
  std::vector<ValueIndex> arguments;
};
/// Inputs, then outputs, in the order of the payload's external ids.
struct DelegateCall {
  uint32_t delegate = 0;  // index of the method's delegates
  std::vector<ValueIndex> arguments;
};
struct Move {
  ValueIndex from = kNoValue, to = kNoValue;
};
struct JumpIfFalse {
  ValueIndex condition = kNoValue;
  uint32_t target = 0;  // index of an instruction
};
using Instruction = std::variant<KernelCall, DelegateCall, Move, JumpIfFalse>;

/// Part of a method that a backend of the runtime computes.
struct Delegate {
  std::string backend;  // "XnnpackBackend"
  std::string payload;
  uint64_t multiply_adds = 0;  // of the largest call; for reports
};

struct Method {
  std::string name;
  std::string component;  // of the program that it was made of; not part of the file
  std::vector<Value> values;
  std::vector<ValueIndex> inputs, outputs;
  std::vector<std::string> input_names, output_names;  // as users see them; not part of the file
  std::vector<Instruction> instructions;
  std::vector<KernelName> kernels;
  std::vector<Delegate> delegates;
  std::vector<uint64_t> arenas;  // bytes of arena 1, 2, …; set by plan_memory()
  uint64_t multiply_adds = 0;    // of the largest call, delegated or not; for reports

  Tensor& tensor(ValueIndex index) { return std::get<Tensor>(values[static_cast<size_t>(index)]); }
  const Tensor& tensor(ValueIndex index) const { return std::get<Tensor>(values[static_cast<size_t>(index)]); }
};

/// Bytes that tensors and delegates find by their name.
struct NamedData {
  std::string key;
  TensorSourcePtr source;
};

struct Document {
  std::vector<Method> methods;
  std::vector<NamedData> data;             // keys are unique; in order of first use
  std::vector<QuantizedWeight> quantized;  // not part of the file
};

}  // namespace argosy::executorch
