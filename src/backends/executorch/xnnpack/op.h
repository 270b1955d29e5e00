#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

class XnnpackBuilder;

/// A node with its arguments by name; reads only.
class NodeView {
 public:
  /// `is_written`: the weights that some node writes, by index of the program's weights; their values are not
  /// constants. Null: no weight is written.
  NodeView(const Program& program, const Component& component, const Graph& graph, NodeId node,
           const std::vector<bool>* is_written = nullptr);

  const OpSchema& schema() const { return schema_; }
  const Node& node() const { return node_; }
  const Graph& graph() const { return graph_; }
  const Program& program() const { return program_; }
  SymContext& symbols() const { return *component_.symbols; }
  const Component& component() const { return component_; }

  bool has(std::string_view argument) const { return schema_.find_argument(argument).has_value(); }
  /// An argument that the op's schema has.
  const Argument& operator[](std::string_view argument) const;
  /// nullopt: None.
  std::optional<ValueId> tensor(std::string_view argument) const;
  /// A number that is not computed, whatever its type.
  std::optional<double> number(std::string_view argument) const;
  std::optional<int64_t> integer(std::string_view argument) const;
  std::optional<bool> boolean(std::string_view argument) const;
  /// A list of numbers, none of them computed; a single number is a list of one.
  std::optional<std::vector<int64_t>> integers(std::string_view argument) const;
  /// A dim counted from the front.
  std::optional<size_t> dim(std::string_view argument, size_t rank) const;

  ValueId output(size_t index = 0) const { return node_.outputs[index]; }
  const TensorType& type(ValueId value) const;
  size_t rank(ValueId value) const { return type(value).shape.size(); }
  /// nullopt: it varies.
  std::optional<int64_t> size(ValueId value, size_t dim) const;
  /// Whether it is a weight that is never written.
  bool is_constant(ValueId value) const;
  /// How many dims have a size that varies.
  int dynamic_dims(ValueId value) const;

 private:
  const Program& program_;
  const Component& component_;
  const Graph& graph_;
  const Node& node_;
  const OpSchema& schema_;
  const std::vector<bool>* is_written_;
};

/// The dtypes of values that its kernels for floats take.
inline bool computes_in(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16; }

/// How much work a node is, which decides whether it is worth delegating.
enum class Effort : uint8_t {
  kMoves,     // only moves data
  kComputes,  // elementwise
  kHeavy,     // products, convolutions, norms
};

/// How XNNPACK computes one op. Rows of constexpr arrays, one file per family.
struct XnnpackOp {
  std::string_view op;
  Effort effort = Effort::kComputes;
  /// Whether it can compute this node; types are checked before: f32 or f16, the same for all tensors, ranks and
  /// bounds.
  bool (*supports)(const NodeView&);
  Status (*emit)(const NodeView&, XnnpackBuilder&);
  bool is_typed = false;  // checks dtypes itself
};

/// The op's row if XNNPACK computes this node, else null.
const XnnpackOp* find_xnnpack_op(const NodeView& view);
/// The same by name alone: of a node that is known to be computed.
const XnnpackOp* find_xnnpack_op(std::string_view op);

// Families.
std::span<const XnnpackOp> xnnpack_elementwise();
std::span<const XnnpackOp> xnnpack_products();
std::span<const XnnpackOp> xnnpack_shapes();
std::span<const XnnpackOp> xnnpack_norms();
std::span<const XnnpackOp> xnnpack_convolutions();
std::span<const XnnpackOp> xnnpack_images();
std::span<const XnnpackOp> xnnpack_quantized();

/// For ops whose support depends on types alone.
inline bool always(const NodeView&) { return true; }

}  // namespace argosy::executorch
