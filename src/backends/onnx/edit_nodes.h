#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/onnx/edit.h"
#include "backends/onnx/kernel_types.h"

/// What edits that add more than a node or two are written with.
namespace argosy::onnx {

/// Nodes to be put before or after a model's own.
class NodeList {
 public:
  explicit NodeList(Model& model) : model_(model) {}

  /// A node with one result of a dtype; the shape is nobody's concern inside.
  Ref node(std::string op, std::vector<Ref> inputs, DType dtype, std::vector<Attribute> attributes = {}) {
    Ref result = add_value(model_, {"", dtype, std::nullopt});
    give(std::move(op), std::move(inputs), result, std::move(attributes));
    return result;
  }
  Ref node(std::string op, std::vector<Ref> inputs, std::vector<Attribute> attributes = {}) {
    return node(std::move(op), std::move(inputs), DType::kI64, std::move(attributes));
  }
  /// The same for a result that is there already.
  void give(std::string op, std::vector<Ref> inputs, Ref result, std::vector<Attribute> attributes = {}) {
    nodes_.push_back({std::move(op), "", std::move(inputs), {result}, std::move(attributes)});
  }
  Ref ints(const std::vector<int64_t>& values) { return add_ints(model_, values); }
  Ref integer(int64_t value) { return add_integer(model_, value); }
  /// One size of a tensor, with one dim.
  Ref size(Ref tensor, int64_t dim) { return node("Shape", {tensor}, {{"start", dim}, {"end", dim + 1}}); }
  Ref cast(Ref value, DType dtype) { return node("Cast", {value}, dtype, {{"to", to_attribute(dtype)}}); }
  void give_cast(Ref value, Ref result) {
    give("Cast", {value}, result, {{"to", to_attribute(model_[result].dtype.value_or(DType::kI64))}});
  }
  Ref concat(std::vector<Ref> parts) { return node("Concat", std::move(parts), {{"axis", int64_t{0}}}); }

  /// Puts the nodes before the others; nothing may be added afterwards.
  void insert() {
    std::vector<Node>& root = model_.graphs[0].nodes;
    root.insert(root.begin(), std::make_move_iterator(nodes_.begin()), std::make_move_iterator(nodes_.end()));
  }
  /// The same, after the others.
  void append() {
    std::vector<Node>& root = model_.graphs[0].nodes;
    root.insert(root.end(), std::make_move_iterator(nodes_.begin()), std::make_move_iterator(nodes_.end()));
  }

 private:
  static int64_t to_attribute(DType dtype) { return onnx_type(dtype); }

  Model& model_;
  std::vector<Node> nodes_;
};

/// Takes an input away from callers; the value stays, without a name and a producer.
inline Ref take_input(Model& model, Ref input) {
  std::erase(model.graphs[0].inputs, input);
  model[input].name.clear();
  return input;
}

inline Ref add_input(Model& model, std::string_view name, std::vector<Dim> shape) {
  Ref input = add_value(model, {std::string(name), DType::kI64, std::move(shape)});
  model.graphs[0].inputs.push_back(input);
  return input;
}

}  // namespace argosy::onnx
