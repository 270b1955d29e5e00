#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "io/onnx/onnx_model.h"
#include "ir/program.h"

namespace argosy {

/// What a path holds, as far as it can be inspected.
enum class InputKind : uint8_t { kPt2, kCapture, kText, kCheckpoint, kOnnx, kExecutorch };
std::string_view describe(InputKind kind);  // "torch.export archive"

/// By the extension, or for an unknown one by the first bytes. A folder is a checkpoint.
Result<InputKind> input_kind(const std::filesystem::path& path);

struct DTypeTotal {
  DType dtype = DType::kF32;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

/// Sums by dtype, in the order of DType.
class DTypeTotals {
 public:
  void add(DType dtype, uint64_t elements, uint64_t bytes);
  std::vector<DTypeTotal> list() const;

 private:
  std::map<DType, DTypeTotal> totals_;
};

/// A checkpoint as it was opened, and what is summed over it. `by_size` holds indices into checkpoint.tensors(),
/// largest first, then by name.
struct CheckpointReport {
  Checkpoint checkpoint;
  std::vector<DTypeTotal> totals;
  std::vector<uint32_t> by_size;
};

/// `top` bounds by_size, so that a listing of a few among many tensors costs no sorting of all.
Result<CheckpointReport> inspect_checkpoint(const std::filesystem::path& path, size_t top);

/// An ONNX file as it was read, and what is summed over it. Tensors whose type has no DType (strings) are in no total.
struct OnnxReport {
  OnnxModel model;
  std::vector<DTypeTotal> totals;
  std::vector<uint32_t> by_size;  // all initializers, largest first, then by name
  std::vector<std::string> warnings;
};

Result<OnnxReport> inspect_onnx(const std::filesystem::path& path, OnnxNodes nodes = OnnxNodes::kCounted);

/// Type of a value as users read it: "f32", {"batch", "sequence", "768"}. Numbers have the dtype "int", "float" or
/// "bool" and no dims.
struct TypeText {
  std::string dtype;
  std::vector<std::string> dims;
  bool is_tensor = true;
};

struct InterfaceEntry {
  std::string name;
  std::optional<TypeText> type;  // none: fixed to a constant
  std::string constant;          // as text, if there is no type
};

/// A dim that may vary.
struct DimEntry {
  std::string name;    // what users call it
  std::string symbol;  // what torch calls it
  SymRange range;
};

/// State that a call changes: returned as an output, or written in place by nodes.
struct MutationEntry {
  std::string kind;  // "buffer", "parameter", "input"
  std::string target;
  std::optional<uint32_t> output;  // index of the graph output that holds the new value
  uint64_t writes = 0;             // nodes that write it in place
};

struct OpCount {
  std::string op;
  uint64_t count = 0;
};

struct ComponentReport {
  std::string name;
  uint64_t nodes = 0;  // with those of sub-graphs
  uint64_t sub_graphs = 0;
  std::vector<InterfaceEntry> inputs, outputs;
  std::vector<DimEntry> dims;
  std::vector<MutationEntry> mutations;
  std::vector<SpecializedDim> specialized;
  std::vector<std::string> guards;
  uint64_t guards_not_understood = 0;
  std::vector<OpCount> ops;  // most frequent first, then by name
};

struct TensorEntry {
  std::string name;
  WeightKind kind = WeightKind::kParameter;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string tied_to;    // name of the weight that it is the same as, or empty
  bool is_stored = true;  // false: the file holds its shape only
};

std::string_view to_text(WeightKind kind);  // "parameter", "buffer", "non-persistent buffer", "constant"

struct ProgramReport {
  std::vector<ComponentReport> components;
  std::vector<OpCount> ops;          // over all components
  std::vector<TensorEntry> tensors;  // largest first, then by name
  std::vector<DTypeTotal> totals;    // tied weights count once
  std::vector<std::string> warnings;
};

/// Linear in nodes, weights and guards.
ProgramReport inspect_program(const Program& program);

}  // namespace argosy
