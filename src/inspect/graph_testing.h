#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/onnx/onnx_model.h"

namespace argosy {

/// For tests only: a model, node by node.
class GraphMaker {
 public:
  GraphMaker() = default;
  GraphMaker(const GraphMaker&) = delete;
  GraphMaker& operator=(const GraphMaker&) = delete;

  GraphMaker& opset(std::string domain, int64_t version) {
    model_.opset_imports.emplace_back(std::move(domain), version);
    return *this;
  }
  /// Dims that begin with a digit are numbers.
  GraphMaker& input(const std::string& name, const std::vector<std::string>& dims, const std::string& type = "f32") {
    model_.inputs.push_back(value(name, dims, type));
    return *this;
  }
  GraphMaker& output(const std::string& name, const std::vector<std::string>& dims, const std::string& type = "f32") {
    model_.outputs.push_back(value(name, dims, type));
    return *this;
  }
  GraphMaker& weight(const std::string& name, std::vector<int64_t> shape) {
    model_.initializers.push_back({.name = name, .type = "f32", .dtype = DType::kF32, .shape = std::move(shape)});
    return *this;
  }
  /// `op` may have a domain: "com.microsoft.Attention". The node is called `name`, or else after its output.
  GraphMaker& node(std::string_view op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const std::string& name = "", std::vector<std::pair<std::string, int64_t>> integers = {}) {
    size_t dot = op.rfind('.');
    std::string domain(dot == std::string_view::npos ? "" : op.substr(0, dot));
    OnnxNode node{.name = name.empty() ? outputs[0] : name, .integers = std::move(integers)};
    node.op = numbers_.op(std::move(domain), std::string(op.substr(dot == std::string_view::npos ? 0 : dot + 1)));
    for (const std::string& each : inputs) node.inputs.push_back(numbers_.read(each));
    for (const std::string& each : outputs) node.outputs.push_back(numbers_.given(each));
    model_.graph.nodes.push_back(std::move(node));
    return *this;
  }
  const OnnxModel& done() {
    model_.graph.inputs.clear();
    model_.graph.outputs.clear();
    model_.graph.initializers.clear();
    for (const OnnxValue& each : model_.inputs) model_.graph.inputs.push_back(numbers_.read(each.name));
    for (const OnnxValue& each : model_.outputs) model_.graph.outputs.push_back(numbers_.read(each.name));
    for (const OnnxInitializer& each : model_.initializers)
      model_.graph.initializers.push_back(numbers_.read(each.name));
    return model_;
  }

 private:
  static OnnxValue value(const std::string& name, const std::vector<std::string>& dims, const std::string& type) {
    OnnxValue result{.name = name, .type = type, .shape = {}, .has_shape = true};
    for (const std::string& dim : dims) {
      bool is_number = !dim.empty() && dim[0] >= '0' && dim[0] <= '9';
      result.shape.push_back(is_number ? OnnxDim{std::stoll(dim), ""} : OnnxDim{std::nullopt, dim});
    }
    return result;
  }

  OnnxModel model_;
  OnnxNumbers numbers_{model_.graph};
};

}  // namespace argosy
