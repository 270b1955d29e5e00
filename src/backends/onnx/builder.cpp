#include "backends/onnx/builder.h"

#include <algorithm>
#include <cstring>

#include "backends/onnx/kernel_types.h"
#include "base/check.h"
#include "base/text.h"
#include "tensor/cast.h"

namespace argosy::onnx {
namespace {

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  std::span<const std::byte> bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

// Of ops with several results: the element type of those after the first, where it is not that of the first.
DType later_type(std::string_view op, size_t result, DType first) {
  if (op == "DynamicQuantizeLinear") return result == 1 ? DType::kF32 : first;
  if (op == "TopK" || op == "Unique" || op == "MaxPool") return result == 0 ? first : DType::kI64;
  return first;
}

}  // namespace

Builder::Builder(int opset) {
  model_.opset = opset;
  model_.graphs.emplace_back();
}

Ref Builder::add_value(Value value) {
  Ref ref{static_cast<uint32_t>(model_.values.size())};
  model_.values.push_back(std::move(value));
  return ref;
}

DType Builder::dtype(Ref ref) const {
  ARGOSY_CHECK(ref.is_valid() && model_[ref].dtype, "a value whose element type is not known");
  return *model_[ref].dtype;
}

Ref Builder::literal_value(std::vector<std::byte> bytes, DType dtype, Ints shape) {
  auto source = literal(std::move(bytes), dtype, std::move(shape));
  ARGOSY_CHECK(source, "a literal of the wrong size");
  return constant(*std::move(source));
}

Ref Builder::constant(TensorSourcePtr literal) {
  auto [found, is_new] = constants_.try_emplace(literal->recipe());
  if (!is_new) return found->second;
  found->second = weight(literal, "");
  literals_.emplace(found->second, std::move(literal));
  return found->second;
}

Ref Builder::weight(TensorSourcePtr source, std::string name) {
  Value value{std::move(name), source->dtype(), std::vector<Dim>(source->shape().begin(), source->shape().end())};
  Ref ref = add_value(std::move(value));
  model_.initializers.push_back({ref, std::move(source)});
  return ref;
}

Ref Builder::ints(const Ints& values) {
  return literal_value(bytes_of(std::span(values)), DType::kI64, {static_cast<int64_t>(values.size())});
}

Ref Builder::floats(const std::vector<float>& values) {
  return literal_value(bytes_of(std::span(values)), DType::kF32, {static_cast<int64_t>(values.size())});
}

Ref Builder::integer(int64_t value) { return scalar(value, DType::kI64); }

Ref Builder::scalar(int64_t value, DType dtype) {
  if (kind_of(dtype) == DTypeKind::kFloat) return scalar(static_cast<double>(value), dtype);
  if (dtype == DType::kBool) value = value != 0 ? 1 : 0;
  std::vector<std::byte> bytes(static_cast<size_t>(bits_of(dtype)) / 8);
  std::memcpy(bytes.data(), &value, bytes.size());  // little-endian: the low bytes come first
  return literal_value(std::move(bytes), dtype, {});
}

Ref Builder::scalar(double value, DType dtype) {
  if (kind_of(dtype) != DTypeKind::kFloat) return scalar(static_cast<int64_t>(value), dtype);
  std::vector<std::byte> given = bytes_of(std::span<const double>(&value, 1));
  if (dtype == DType::kF64) return literal_value(std::move(given), dtype, {});
  ARGOSY_CHECK(can_cast(DType::kF64, dtype), format("a constant of type {}", to_text(dtype)));
  std::vector<std::byte> bytes(static_cast<size_t>(bits_of(dtype)) / 8);
  cast_elements(DType::kF64, given, dtype, bytes);
  return literal_value(std::move(bytes), dtype, {});
}

Refs Builder::add_node(std::string_view op, Refs inputs, Attributes attributes, size_t results, DType first) {
  // "com.microsoft.GroupQueryAttention" is of another domain than ONNX's own.
  size_t dot = op.rfind('.');
  std::string domain(op.substr(0, dot == std::string_view::npos ? 0 : dot));
  std::string name(op.substr(dot == std::string_view::npos ? 0 : dot + 1));
  Node node{std::move(name), std::move(domain), std::move(inputs), {}, std::move(attributes), origin_};
  for (size_t i = 0; i < results; ++i) node.outputs.push_back(add_value({"", later_type(op, i, first), std::nullopt}));
  Refs outputs = node.outputs;
  model_.graphs[current_graph()].nodes.push_back(std::move(node));
  return outputs;
}

Refs Builder::node(std::string_view op, Refs inputs, size_t results, Attributes attributes) {
  const KernelTypes* types = kernel_types(op);
  std::optional<DType> given;
  if (types != nullptr) {
    size_t end = types->count == 0 ? inputs.size() : std::min(inputs.size(), types->first + types->count);
    for (size_t i = types->first; i < end; ++i) {
      if (!inputs[i].is_valid()) continue;
      DType own = dtype(inputs[i]);
      DType computed = kernel_type(*types, own, keeps_bf16_);
      if (computed == own) continue;
      given = own;
      inputs[i] = cast(inputs[i], computed);
    }
  }
  std::vector<DType> dtypes;
  for (Ref input : inputs) dtypes.push_back(input.is_valid() ? dtype(input) : DType::kF32);
  DType first = result_type(op, dtypes, attributes);
  Refs outputs = add_node(op, std::move(inputs), std::move(attributes), results, first);
  if (given && types->keeps_type) outputs.front() = cast(outputs.front(), *given);
  return outputs;
}

Ref Builder::node(std::string_view op, Refs inputs, Attributes attributes) {
  return node(op, std::move(inputs), 1, std::move(attributes)).front();
}

Refs Builder::typed_node(std::string_view op, Refs inputs, std::span<const DType> results, Attributes attributes) {
  Refs outputs = add_node(op, std::move(inputs), std::move(attributes), results.size(), DType::kF32);
  for (size_t i = 0; i < results.size(); ++i) model_[outputs[i]].dtype = results[i];
  return outputs;
}

Ref Builder::cast(Ref value, DType dtype) {
  if (this->dtype(value) == dtype) return value;
  return add_node("Cast", {value}, {{"to", int64_t{onnx_type(dtype)}}}, 1, dtype).front();
}

Ref Builder::fill(Ref shape, Ref scalar) {
  auto found = literals_.find(scalar);
  ARGOSY_CHECK(found != literals_.end(), "fill() takes a constant");
  auto value = reshaped(found->second, {1});
  ARGOSY_CHECK(value, "fill() takes a constant without dims");
  std::vector<std::byte> bytes;
  Status status = (*value)->stream_to(
      [&](std::span<const std::byte> block) -> Status {
        bytes.insert(bytes.end(), block.begin(), block.end());
        return {};
      },
      4096);
  ARGOSY_CHECK(status, "a literal that cannot be read");
  auto attribute = literal(std::move(bytes), dtype(scalar), {1});
  return add_node("ConstantOfShape", {shape}, {{"value", *attribute}}, 1, dtype(scalar)).front();
}

bool Builder::is_open(uint32_t graph) const { return graph == 0 || std::ranges::find(stack_, graph) != stack_.end(); }

void Builder::open_graph(std::string name, Refs inputs) {
  stack_.push_back(static_cast<uint32_t>(model_.graphs.size()));
  model_.graphs.push_back({std::move(name), std::move(inputs), {}, {}});
}

uint32_t Builder::close_graph(Refs outputs) {
  uint32_t graph = stack_.back();
  model_.graphs[graph].outputs = std::move(outputs);
  stack_.pop_back();
  return graph;
}

}  // namespace argosy::onnx
