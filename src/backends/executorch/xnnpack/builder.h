#pragma once

#include <xnnpack_generated.h>

#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "backends/executorch/data_table.h"
#include "backends/executorch/document.h"
#include "backends/executorch/xnnpack/op.h"

namespace argosy::executorch {

/// Index of a value of XNNPACK's graph.
using XnnId = uint32_t;
inline constexpr XnnId kNoXnn = 0xffffffff;

// Bits of a node's flags.
inline constexpr uint32_t kTransposeWeights = 1;  // a filter is [in, out]; of a product, the last two dims of b swapped
inline constexpr uint32_t kAlignCorners = 8;
inline constexpr uint32_t kKeepDims = 64;

/// How the values of a constant are stored, if not as floats.
struct QuantizedWeight {
  fb_xnnpack::XNNDatatype datatype = fb_xnnpack::XNNDatatype::xnn_datatype_qcint8;
  TensorSourcePtr values, scales;
  int64_t group_size = 0;  // 0: a scale for each row
  std::string name;
  int32_t channel_dim = 0;  // of rows that have a scale each
};

/// How floats are rounded to int8: integer = value / scale + zero.
struct Rounding {
  float scale = 1;
  int32_t zero = 0;
};

/// Of an argument of a layer of integers: "input" or "output".
Rounding rounding_of(const NodeView& view, std::string_view argument);
/// Whether such a layer can be computed: what it is stored as is checked, sizes are not.
bool supports_static(const NodeView& view);

/// Writes one sub-graph in the form that XNNPACK's backend reads. Values of four dims may exist twice, row-major (N, C,
/// H, W) as in the graph and with channels last; the form that is asked for second is copied from the first.
class XnnpackBuilder {
 public:
  XnnpackBuilder(const Program& program, const Component& component, const Graph& graph, DataTable& data);

  /// Operands get their external ids. Results get theirs when they are defined.
  Status begin();
  Result<std::string> finish();

  // ---- values of the graph ----
  Result<XnnId> row_major(ValueId value);
  /// For filters and biases: a weight is packed by XNNPACK when it loads. The runtime then frees the bytes, so that
  /// nothing may read them as they are.
  Result<XnnId> packed(ValueId value) {
    return graph_[value].weight.is_valid() ? weight(value, false, true) : row_major(value);
  }
  /// A weight of less than four dims has the shape in which it is broadcast.
  Result<XnnId> channels_last(ValueId value);
  /// Whether there is only a form with channels last.
  bool prefers_channels_last(ValueId value) const;
  /// Defines a value that a node computes.
  Result<XnnId> result(ValueId value);
  Result<XnnId> result_channels_last(ValueId value);
  /// The node that computes the value is added only when the value is needed.
  void defer(ValueId value, NodeId node) { deferred_[value.index] = node; }
  /// The deferred node that computes the value; invalid if there is none, or it has been added.
  NodeId deferred(ValueId value) const { return deferred_[value.index]; }

  // ---- others ----
  Result<std::vector<uint32_t>> dims(ValueId value) const;
  XnnId temporary(DType dtype, std::span<const uint32_t> dims);
  /// Bytes under a name, read as they are; the same bytes of the same dims are one value.
  Result<XnnId> constant(std::string_view name, TensorSourcePtr source, std::span<const uint32_t> dims) {
    return constant(name, std::move(source), dims, false);
  }
  /// The same, to be packed.
  Result<XnnId> packed_constant(std::string_view name, TensorSourcePtr source, std::span<const uint32_t> dims);
  /// A row of equal numbers, to be packed.
  Result<XnnId> packed_row(double value, DType dtype, std::span<const uint32_t> dims);
  Result<XnnId> scalar(double value, DType dtype);
  XnnId quantized_constant(const QuantizedWeight& weight, std::span<const uint32_t> dims);
  /// The bias of a layer of integers; kNoXnn if it has none.
  XnnId quantized_bias(const NodeView& view);
  /// The tensor as int8 with a scale for each row of its last dim, chosen at run time; made once for all users.
  Result<XnnId> quantized_rows(ValueId value);
  /// A copy as int8; made once for all users that round it so.
  XnnId rounded(XnnId from, std::span<const uint32_t> dims, Rounding rounding);
  XnnId rounded_temporary(std::span<const uint32_t> dims, Rounding rounding);

  // ---- nodes ----
  using Kind = fb_xnnpack::XNodeUnion;
  struct Clamp {
    float min = -std::numeric_limits<float>::infinity(), max = std::numeric_limits<float>::infinity();
  };
  void unary(Kind kind, XnnId input, XnnId output, uint32_t flags = 0);
  void clamp(XnnId input, XnnId output, Clamp range);
  void binary(Kind kind, XnnId a, XnnId b, XnnId output, uint32_t flags = 0);
  void fully_connected(XnnId input, XnnId filter, XnnId bias, XnnId output, uint32_t flags = 0);
  void transpose(XnnId input, XnnId output, std::span<const uint32_t> permutation);
  /// One size may be 0, which is inferred.
  void reshape(XnnId input, XnnId output, std::span<const uint32_t> shape);
  void slice(XnnId input, XnnId output, std::span<const uint32_t> offsets, std::span<const uint32_t> sizes);
  void concatenate(std::span<const XnnId> inputs, XnnId output, uint32_t axis);
  template <class T>
  void node(Kind kind, flatbuffers::Offset<T> node) {
    add_node(kind, node.Union(), 0);
  }
  flatbuffers::FlatBufferBuilder& buffer() { return buffer_; }

  const Graph& graph() const { return graph_; }

 private:
  struct Placed {
    XnnId row_major = kNoXnn, channels_last = kNoXnn;
  };
  flatbuffers::Offset<fb_xnnpack::XNNTensorValue> tensor_value(fb_xnnpack::XNNDatatype datatype,
                                                               std::span<const uint32_t> dims, uint32_t constant,
                                                               uint32_t external, uint32_t flags);
  XnnId define(fb_xnnpack::XNNDatatype datatype, std::span<const uint32_t> dims, uint32_t constant = 0,
               uint32_t external = kNoXnn, uint32_t flags = 0);
  uint32_t constant_data(const std::string& key, uint64_t bytes);
  void add_node(Kind kind, flatbuffers::Offset<void> node, flatbuffers::Offset<fb_xnnpack::OutputMinMax> range);
  Result<XnnId> weight(ValueId value, bool is_channels_last, bool is_packed = false);
  Result<XnnId> constant(std::string_view name, TensorSourcePtr source, std::span<const uint32_t> dims, bool is_packed);
  Result<XnnId> filled(double value, DType dtype, std::span<const uint32_t> dims, bool is_packed);

  const Program& program_;
  const Component& component_;
  const Graph& graph_;
  DataTable& data_;
  flatbuffers::FlatBufferBuilder buffer_;
  std::vector<flatbuffers::Offset<fb_xnnpack::XNode>> nodes_;
  std::vector<flatbuffers::Offset<fb_xnnpack::XValue>> values_;
  std::vector<flatbuffers::Offset<fb_xnnpack::ConstantDataOffset>> constants_;
  std::vector<uint32_t> input_ids_, output_ids_;
  std::vector<Placed> placed_;      // by value
  std::vector<uint32_t> external_;  // by value: the external id of a result
  std::vector<NodeId> deferred_;    // by value
  std::map<uint32_t, XnnId> quantized_rows_;
  std::map<std::tuple<XnnId, float, int32_t>, XnnId> rounded_;
  std::map<std::string, XnnId> known_;  // constants by key and dims
  std::map<std::string, uint32_t> constant_index_;
};

}  // namespace argosy::executorch
