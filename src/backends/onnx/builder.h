#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/onnx/document.h"
#include "base/result.h"

namespace argosy::onnx {

using Refs = std::vector<Ref>;
using Ints = std::vector<int64_t>;
using Attributes = std::vector<Attribute>;

/// Builds a Model node by node. Knows ONNX and which dtypes ONNX Runtime's CPU kernels take: inputs of another dtype
/// are cast to one that is taken and the result is cast back, so that callers need not care.
class Builder {
 public:
  explicit Builder(int opset);

  int opset() const { return model_.opset; }
  /// Limits the model to this opset. No node, made before or after, may need a newer one.
  void limit_opset(int opset) { model_.opset = std::min(model_.opset, opset); }
  /// Nodes may compute in bf16 from now on, which no CPU kernel does: the model is for other engines.
  void keep_bf16() { keeps_bf16_ = true; }
  /// The finished model; nothing may be called afterwards.
  Model take() { return std::move(model_); }

  // ---- values
  Ref add_value(Value value);
  Value& operator[](Ref ref) { return model_[ref]; }
  const Value& operator[](Ref ref) const { return model_[ref]; }
  /// The type of its elements, which is always known for what this class made.
  DType dtype(Ref ref) const;

  // ---- constants; equal ones are one value
  Ref ints(const Ints& values);                  // i64, one dim
  Ref integer(int64_t value);                    // i64 without dims
  Ref floats(const std::vector<float>& values);  // f32, one dim
  /// Without dims. The number must fit; it is rounded to the dtype.
  Ref scalar(double value, DType dtype);
  Ref scalar(int64_t value, DType dtype);
  Ref constant(TensorSourcePtr literal);
  Ref weight(TensorSourcePtr source, std::string name);

  // ---- nodes, added to the current graph
  /// A node with one result. An op of another domain than ONNX's own has its name in front of its own.
  Ref node(std::string_view op, Refs inputs, Attributes attributes = {});
  std::vector<Ref> node(std::string_view op, Refs inputs, size_t results, Attributes attributes = {});
  /// A node whose results have these types, whatever its inputs have, which stay as they are.
  Refs typed_node(std::string_view op, Refs inputs, std::span<const DType> results, Attributes attributes);
  Ref cast(Ref value, DType dtype);
  /// A tensor of a shape (i64, one dim) whose elements are all `scalar`, a constant without dims.
  Ref fill(Ref shape, Ref scalar);
  /// Nodes added from now on are named after this place in the user's model.
  void set_origin(std::string name) { origin_ = std::move(name); }

  // ---- graphs
  uint32_t current_graph() const { return stack_.back(); }
  bool is_open(uint32_t graph) const;
  /// Nodes go to a new sub-graph until close_graph().
  void open_graph(std::string name, Refs inputs = {});
  uint32_t close_graph(Refs outputs);
  /// Runs `body` with nodes going to the model's own graph.
  template <class Body>
  auto in_root(Body body) {
    stack_.push_back(0);
    auto result = body();
    stack_.pop_back();
    return result;
  }
  Graph& root() { return model_.graphs[0]; }
  Model& model() { return model_; }

 private:
  Ref literal_value(std::vector<std::byte> bytes, DType dtype, Ints shape);
  Refs add_node(std::string_view op, Refs inputs, Attributes attributes, size_t results, DType first);

  Model model_;
  std::vector<uint32_t> stack_ = {0};
  std::map<std::string, Ref> constants_;     // by recipe
  std::map<Ref, TensorSourcePtr> literals_;  // what they are
  std::string origin_;
  bool keeps_bf16_ = false;
};

}  // namespace argosy::onnx
