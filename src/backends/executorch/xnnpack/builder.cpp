#include "backends/executorch/xnnpack/builder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/executorch/bounds.h"
#include "base/check.h"
#include "base/text.h"
#include "tensor/cast.h"

namespace argosy::executorch {
namespace {

/// The use of data that XNNPACK packs: the runtime drops it by its key once it is loaded.
constexpr std::string_view kPacked = "packed:";

constexpr uint32_t kIsInput = 1, kIsOutput = 2;
constexpr std::array<uint32_t, 4> kToChannelsLast = {0, 2, 3, 1}, kFromChannelsLast = {0, 3, 1, 2};

fb_xnnpack::XNNDatatype datatype_of(DType dtype) {
  return dtype == DType::kF16 ? fb_xnnpack::XNNDatatype::xnn_datatype_fp16 : fb_xnnpack::XNNDatatype::xnn_datatype_fp32;
}

std::vector<uint32_t> permuted(std::span<const uint32_t> dims, std::span<const uint32_t> permutation) {
  std::vector<uint32_t> result;
  for (uint32_t dim : permutation) result.push_back(dims[dim]);
  return result;
}

std::string dims_text(std::span<const uint32_t> dims) {
  std::string text;
  for (uint32_t dim : dims) text += format(" {}", dim);
  return text;
}

std::vector<uint32_t> to_vector(std::span<const uint32_t> dims) { return {dims.begin(), dims.end()}; }

}  // namespace

XnnpackBuilder::XnnpackBuilder(const Program& program, const Component& component, const Graph& graph, DataTable& data)
    : program_(program),
      component_(component),
      graph_(graph),
      data_(data),
      placed_(graph.value_limit()),
      external_(graph.value_limit(), kNoXnn),
      deferred_(graph.value_limit()) {
  // The first one stands for "not a constant".
  constants_.push_back(fb_xnnpack::CreateConstantDataOffset(buffer_, 0, 0, buffer_.CreateString("")));
}

Status XnnpackBuilder::begin() {
  uint32_t next = 0;
  for (ValueId input : graph_.inputs()) {
    ARGOSY_TRY(std::vector<uint32_t> sizes, dims(input));
    XnnId id = define(datatype_of(graph_[input].tensor()->dtype), sizes, 0, next++, kIsInput);
    input_ids_.push_back(id);
    placed_[input.index].row_major = id;
  }
  for (const Argument& output : graph_.outputs()) external_[std::get<ValueId>(output.variant()).index] = next++;
  return {};
}

Result<std::string> XnnpackBuilder::finish() {
  for (const Argument& output : graph_.outputs()) {
    ARGOSY_TRY(XnnId id, row_major(std::get<ValueId>(output.variant())));
    output_ids_.push_back(id);
  }
  auto count = static_cast<uint32_t>(input_ids_.size() + output_ids_.size());
  buffer_.Finish(fb_xnnpack::CreateXNNGraph(buffer_, buffer_.CreateString("0"), buffer_.CreateVector(nodes_),
                                            buffer_.CreateVector(values_), count, buffer_.CreateVector(input_ids_),
                                            buffer_.CreateVector(output_ids_), buffer_.CreateVector(constants_)),
                 "XN01");
  // A header of fixed size in front says where the flatbuffer is; no data follows it.
  constexpr uint32_t kHeader = 32;
  constexpr uint16_t kHeaderLength = 30;
  uint32_t size = buffer_.GetSize(), end = kHeader + (size + 15) / 16 * 16;
  std::string payload(end, '\0');
  std::memcpy(payload.data() + 4, "XH00", 4);
  std::memcpy(payload.data() + 8, &kHeaderLength, 2);
  std::memcpy(payload.data() + 10, &kHeader, 4);
  std::memcpy(payload.data() + 14, &size, 4);
  std::memcpy(payload.data() + 18, &end, 4);
  std::memcpy(payload.data() + kHeader, buffer_.GetBufferPointer(), size);
  return payload;
}

// ---- values ----

Result<std::vector<uint32_t>> XnnpackBuilder::dims(ValueId value) const {
  ARGOSY_TRY(std::vector<int32_t> sizes, largest_sizes(component_, *graph_[value].tensor()));
  if (sizes.empty()) return std::vector<uint32_t>(1, 1);
  return std::vector<uint32_t>(sizes.begin(), sizes.end());
}

Result<XnnId> XnnpackBuilder::row_major(ValueId value) {
  if (graph_[value].weight.is_valid()) return weight(value, false);
  if (placed_[value.index].row_major != kNoXnn) return placed_[value.index].row_major;
  if (NodeId node = deferred_[value.index]; node.is_valid()) {
    deferred_[value.index] = {};
    NodeView view(program_, component_, graph_, node);
    ARGOSY_TRY_STATUS(find_xnnpack_op(view.schema().name)->emit(view, *this));
    return placed_[value.index].row_major;
  }
  XnnId from = placed_[value.index].channels_last;
  ARGOSY_CHECK(from != kNoXnn, format("{} is used before it is defined", graph_[value].name));
  ARGOSY_TRY(XnnId to, result(value));
  transpose(from, to, kFromChannelsLast);
  return to;
}

Result<XnnId> XnnpackBuilder::channels_last(ValueId value) {
  if (graph_[value].weight.is_valid()) return weight(value, true);
  if (placed_[value.index].channels_last != kNoXnn) return placed_[value.index].channels_last;
  ARGOSY_TRY(XnnId from, row_major(value));
  ARGOSY_TRY(XnnId to, result_channels_last(value));
  transpose(from, to, kToChannelsLast);
  return to;
}

bool XnnpackBuilder::prefers_channels_last(ValueId value) const {
  return placed_[value.index].row_major == kNoXnn && placed_[value.index].channels_last != kNoXnn;
}

Result<XnnId> XnnpackBuilder::result(ValueId value) {
  ARGOSY_TRY(std::vector<uint32_t> sizes, dims(value));
  uint32_t external = external_[value.index];
  XnnId id = define(datatype_of(graph_[value].tensor()->dtype), sizes, 0, external, external == kNoXnn ? 0 : kIsOutput);
  placed_[value.index].row_major = id;
  return id;
}

Result<XnnId> XnnpackBuilder::result_channels_last(ValueId value) {
  ARGOSY_TRY(std::vector<uint32_t> sizes, dims(value));
  XnnId id = define(datatype_of(graph_[value].tensor()->dtype), permuted(sizes, kToChannelsLast));
  placed_[value.index].channels_last = id;
  return id;
}

Result<XnnId> XnnpackBuilder::weight(ValueId value, bool is_channels_last, bool is_packed) {
  const Weight& weight = program_[graph_[value].weight];
  TensorSourcePtr source = weight.source;
  std::vector<int64_t> shape(weight.shape.begin(), weight.shape.end());
  if (is_channels_last && shape.size() > 1) {
    std::vector<int64_t> wide(4, 1);
    std::ranges::copy(shape, wide.end() - static_cast<ptrdiff_t>(shape.size()));
    shape = std::move(wide);
    ARGOSY_TRY(source, reshaped(source, shape));
    ARGOSY_TRY(source, transposed(source, {kToChannelsLast.begin(), kToChannelsLast.end()}));
    shape = {shape[0], shape[2], shape[3], shape[1]};
  } else if (is_channels_last) {
    // One dim is broadcast along the width, which is no longer last.
    shape = {1, 1, shape.empty() ? 1 : shape[0], 1};
    ARGOSY_TRY(source, reshaped(source, shape));
  }
  std::vector<uint32_t> sizes(std::max<size_t>(shape.size(), 1), 1);
  std::ranges::transform(shape, sizes.begin(), [](int64_t size) { return static_cast<uint32_t>(size); });
  return constant(weight.name, std::move(source), sizes, is_packed);
}

flatbuffers::Offset<fb_xnnpack::XNNTensorValue> XnnpackBuilder::tensor_value(fb_xnnpack::XNNDatatype datatype,
                                                                             std::span<const uint32_t> dims,
                                                                             uint32_t constant, uint32_t external,
                                                                             uint32_t flags) {
  return fb_xnnpack::CreateXNNTensorValue(buffer_, datatype, static_cast<uint32_t>(dims.size()),
                                          buffer_.CreateVector(dims.data(), dims.size()), constant, external, flags,
                                          static_cast<uint32_t>(values_.size()));
}

XnnId XnnpackBuilder::define(fb_xnnpack::XNNDatatype datatype, std::span<const uint32_t> dims, uint32_t constant,
                             uint32_t external, uint32_t flags) {
  auto tensor = tensor_value(datatype, dims, constant, external, flags);
  values_.push_back(fb_xnnpack::CreateXValue(buffer_, fb_xnnpack::XValueUnion::XNNTensorValue, tensor.Union()));
  return static_cast<XnnId>(values_.size() - 1);
}

XnnId XnnpackBuilder::temporary(DType dtype, std::span<const uint32_t> dims) {
  return define(datatype_of(dtype), dims);
}

uint32_t XnnpackBuilder::constant_data(const std::string& key, uint64_t bytes) {
  auto [found, is_new] = constant_index_.try_emplace(key, static_cast<uint32_t>(constants_.size()));
  if (is_new) {
    constants_.push_back(fb_xnnpack::CreateConstantDataOffset(buffer_, std::numeric_limits<uint64_t>::max(), bytes,
                                                              buffer_.CreateString(key)));
  }
  return found->second;
}

Result<XnnId> XnnpackBuilder::constant(std::string_view name, TensorSourcePtr source, std::span<const uint32_t> dims,
                                       bool is_packed) {
  DType dtype = source->dtype();
  auto bytes = static_cast<uint64_t>(source->bytes());
  std::string key = data_.add(name, std::move(source), is_packed ? kPacked : "");
  auto [found, is_new] = known_.try_emplace(key + dims_text(dims));
  if (is_new) found->second = define(datatype_of(dtype), dims, constant_data(key, bytes));
  return found->second;
}

Result<XnnId> XnnpackBuilder::packed_constant(std::string_view name, TensorSourcePtr source,
                                              std::span<const uint32_t> dims) {
  return constant(name, std::move(source), dims, true);
}

Result<XnnId> XnnpackBuilder::packed_row(double value, DType dtype, std::span<const uint32_t> dims) {
  return filled(value, dtype, dims, true);
}

Result<XnnId> XnnpackBuilder::filled(double value, DType dtype, std::span<const uint32_t> dims, bool is_packed) {
  size_t count = 1;
  for (uint32_t dim : dims) count *= dim;
  std::vector<float> numbers(count, static_cast<float>(value));
  std::vector<std::byte> bytes(count * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  std::vector<int64_t> shape(dims.begin(), dims.end());
  ARGOSY_TRY(TensorSourcePtr source, literal(std::move(bytes), DType::kF32, shape));
  ARGOSY_TRY(source, converted(source, dtype));
  return constant(format("xnnpack.{}.{}", format_double(value), count), std::move(source), dims, is_packed);
}

Result<XnnId> XnnpackBuilder::scalar(double value, DType dtype) {
  std::array<uint32_t, 1> one = {1};
  return filled(value, dtype, one, false);
}

XnnId XnnpackBuilder::quantized_constant(const QuantizedWeight& weight, std::span<const uint32_t> dims) {
  auto bytes = static_cast<uint64_t>(weight.values->bytes());
  auto scale_bytes = static_cast<uint64_t>(weight.scales->bytes());
  auto count = static_cast<uint32_t>(weight.scales->elements());
  std::string key = data_.add(weight.name, weight.values, kPacked);
  std::string scale_key = data_.add(weight.name + ".scales", weight.scales, kPacked);
  auto tensor = tensor_value(weight.datatype, dims, constant_data(key, bytes), kNoXnn, 0);
  uint32_t scales = constant_data(scale_key, scale_bytes);
  flatbuffers::Offset<fb_xnnpack::XNNQuantizedTensorValue> value;
  auto none = buffer_.CreateVector(std::vector<float>{});
  if (weight.group_size > 0) {
    auto parameters = fb_xnnpack::CreatePerChannelGroupQuant(buffer_, none, 0, static_cast<int32_t>(weight.group_size),
                                                             scales, count);
    value = fb_xnnpack::CreateXNNQuantizedTensorValue(buffer_, tensor, fb_xnnpack::XNNQuantParams::PerChannelGroupQuant,
                                                      parameters.Union());
  } else {
    auto parameters = fb_xnnpack::CreatePerChannelQuant(buffer_, none, weight.channel_dim, scales, count);
    value = fb_xnnpack::CreateXNNQuantizedTensorValue(buffer_, tensor, fb_xnnpack::XNNQuantParams::PerChannelQuant,
                                                      parameters.Union());
  }
  values_.push_back(fb_xnnpack::CreateXValue(buffer_, fb_xnnpack::XValueUnion::XNNQuantizedTensorValue, value.Union()));
  return static_cast<XnnId>(values_.size() - 1);
}

Result<XnnId> XnnpackBuilder::quantized_rows(ValueId input) {
  if (auto found = quantized_rows_.find(input.index); found != quantized_rows_.end()) return found->second;
  ARGOSY_TRY(XnnId from, row_major(input));
  ARGOSY_TRY(std::vector<uint32_t> sizes, dims(input));
  auto tensor = tensor_value(fb_xnnpack::XNNDatatype::xnn_datatype_qdint8, sizes, 0, kNoXnn, 0);
  auto parameters = fb_xnnpack::CreatePerTokenDynamicQuant(buffer_, 1);
  auto value = fb_xnnpack::CreateXNNQuantizedTensorValue(
      buffer_, tensor, fb_xnnpack::XNNQuantParams::PerTokenDynamicQuant, parameters.Union());
  values_.push_back(fb_xnnpack::CreateXValue(buffer_, fb_xnnpack::XValueUnion::XNNQuantizedTensorValue, value.Union()));
  auto to = static_cast<XnnId>(values_.size() - 1);
  unary(Kind::XNNConvert, from, to);
  quantized_rows_[input.index] = to;
  return to;
}

XnnId XnnpackBuilder::rounded_temporary(std::span<const uint32_t> dims, Rounding rounding) {
  auto tensor = tensor_value(fb_xnnpack::XNNDatatype::xnn_datatype_qint8, dims, 0, kNoXnn, 0);
  auto parameters = fb_xnnpack::CreatePerTensorQuant(buffer_, rounding.scale, rounding.zero);
  auto value = fb_xnnpack::CreateXNNQuantizedTensorValue(buffer_, tensor, fb_xnnpack::XNNQuantParams::PerTensorQuant,
                                                         parameters.Union());
  values_.push_back(fb_xnnpack::CreateXValue(buffer_, fb_xnnpack::XValueUnion::XNNQuantizedTensorValue, value.Union()));
  return static_cast<XnnId>(values_.size() - 1);
}

XnnId XnnpackBuilder::rounded(XnnId from, std::span<const uint32_t> dims, Rounding rounding) {
  auto [found, is_new] = rounded_.try_emplace({from, rounding.scale, rounding.zero});
  if (is_new) {
    found->second = rounded_temporary(dims, rounding);
    unary(Kind::XNNConvert, from, found->second);
  }
  return found->second;
}

// ---- nodes ----

void XnnpackBuilder::add_node(Kind kind, flatbuffers::Offset<void> node,
                              flatbuffers::Offset<fb_xnnpack::OutputMinMax> range) {
  nodes_.push_back(fb_xnnpack::CreateXNode(buffer_, kind, node, static_cast<uint32_t>(nodes_.size()), range));
}

void XnnpackBuilder::unary(Kind kind, XnnId input, XnnId output, uint32_t flags) {
  node(kind, fb_xnnpack::Create_XNNNode1x1(buffer_, input, output, flags));
}

void XnnpackBuilder::clamp(XnnId input, XnnId output, Clamp range) {
  auto limits = fb_xnnpack::CreateOutputMinMax(buffer_, range.min, range.max);
  add_node(Kind::XNNClamp, fb_xnnpack::Create_XNNNode1x1(buffer_, input, output, 0).Union(), limits);
}

void XnnpackBuilder::binary(Kind kind, XnnId a, XnnId b, XnnId output, uint32_t flags) {
  node(kind, fb_xnnpack::Create_XNNNode2x1(buffer_, a, b, output, flags));
}

void XnnpackBuilder::fully_connected(XnnId input, XnnId filter, XnnId bias, XnnId output, uint32_t flags) {
  node(Kind::XNNFullyConnected, fb_xnnpack::CreateXNNFullyConnected(buffer_, input, filter, bias, output, flags));
}

void XnnpackBuilder::transpose(XnnId input, XnnId output, std::span<const uint32_t> permutation) {
  std::vector<uint32_t> order = to_vector(permutation);
  node(Kind::XNNStaticTranspose, fb_xnnpack::CreateXNNStaticTransposeDirect(
                                     buffer_, static_cast<uint32_t>(order.size()), &order, input, output, 0));
}

void XnnpackBuilder::reshape(XnnId input, XnnId output, std::span<const uint32_t> shape) {
  std::vector<uint32_t> sizes = to_vector(shape);
  node(Kind::XNNStaticReshape, fb_xnnpack::CreateXNNStaticReshapeDirect(buffer_, static_cast<uint32_t>(sizes.size()),
                                                                        &sizes, input, output, 0));
}

void XnnpackBuilder::slice(XnnId input, XnnId output, std::span<const uint32_t> offsets,
                           std::span<const uint32_t> sizes) {
  std::vector<uint32_t> first = to_vector(offsets), extent = to_vector(sizes);
  node(Kind::XNNStaticSlice, fb_xnnpack::CreateXNNStaticSliceDirect(buffer_, static_cast<uint32_t>(first.size()),
                                                                    &first, &extent, input, output, 0));
}

void XnnpackBuilder::concatenate(std::span<const XnnId> inputs, XnnId output, uint32_t axis) {
  constexpr std::array kKinds = {Kind::XNNConcatenate2, Kind::XNNConcatenate3, Kind::XNNConcatenate4,
                                 Kind::XNNConcatenate5};
  ARGOSY_CHECK(inputs.size() >= 2 && inputs.size() <= 5, "a join of so many tensors");
  std::array<XnnId, 5> ids = {kNoXnn, kNoXnn, kNoXnn, kNoXnn, kNoXnn};
  std::ranges::copy(inputs, ids.begin());
  node(kKinds[inputs.size() - 2],
       fb_xnnpack::Create_XNNCat(buffer_, axis, ids[0], ids[1], ids[2], ids[3], output, 0, ids[4]));
}

}  // namespace argosy::executorch
