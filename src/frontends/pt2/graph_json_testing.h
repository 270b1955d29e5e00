#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "frontends/pt2/graph_json.h"
#include "io/json.h"

namespace argosy {

/// Builds graph JSON for tests: parts are JSON texts, the rest is what every graph has.
struct GraphText {
  std::vector<std::string> inputs, outputs, nodes;         // of the graph
  std::vector<std::string> tensor_values, sym_int_values;  // members
  std::vector<std::string> input_specs, output_specs;
  std::vector<std::string> ranges, guards;
  std::string schema_version = R"({"major": 8, "minor": 20})";

  static std::string size(int64_t number) { return format(R"({{"as_int": {}}})", number); }
  /// A size {"as_expr": …} of that srepr text.
  static std::string expression(std::string_view srepr, std::string_view hint = "null") {
    return format(R"({{"as_expr": {{"expr_str": "{}", "hint": {}}}}})", srepr, hint);
  }
  static std::string symbol(std::string_view name) {
    return expression(format("Symbol('{}', positive=True, integer=True)", name), R"({"as_int": 3})");
  }
  /// dtype: the number of the JSON (7: f32, 5: i64, 12: bool, 13: bf16). Row-major.
  static std::string tensor(std::string_view name, int dtype, const std::vector<std::string>& sizes,
                            const std::vector<std::string>& strides) {
    return format(
        R"("{}": {{"dtype": {}, "sizes": [{}], "requires_grad": false, "device": {{"type": "cpu", "index": null}}, )"
        R"("strides": [{}], "storage_offset": {{"as_int": 0}}, "layout": 7}})",
        name, dtype, join(sizes, ", "), join(strides, ", "));
  }
  static std::string tensor(std::string_view name, int dtype, const std::vector<int64_t>& shape) {
    std::vector<std::string> sizes, strides(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = size(stride);
      stride *= shape[i];
    }
    for (int64_t dim : shape) sizes.push_back(size(dim));
    return tensor(name, dtype, sizes, strides);
  }
  static std::string value(std::string_view name) { return format(R"({{"as_tensor": {{"name": "{}"}}}})", name); }
  static std::string argument(std::string_view name, std::string_view arg) {
    return format(R"({{"name": "{}", "arg": {}, "kind": 1}})", name, arg);
  }
  static std::string node(std::string_view target, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& results, std::string_view metadata = "{}") {
    return format(R"({{"target": "{}", "inputs": [{}], "outputs": [{}], "metadata": {}, "name": "n"}})", target,
                  join(arguments, ", "), join(results, ", "), metadata);
  }

  GraphText& add_input(std::string_view name, int dtype, const std::vector<int64_t>& shape) {
    tensor_values.push_back(tensor(name, dtype, shape));
    return add_declared_input(name);
  }
  GraphText& add_declared_input(std::string_view name) {
    inputs.push_back(value(name));
    input_specs.push_back(format(R"({{"user_input": {{"arg": {}}}}})", value(name)));
    return *this;
  }
  GraphText& add_parameter(std::string_view name, std::string_view weight, int dtype,
                           const std::vector<int64_t>& shape) {
    tensor_values.push_back(tensor(name, dtype, shape));
    inputs.push_back(value(name));
    input_specs.push_back(
        format(R"({{"parameter": {{"arg": {{"name": "{}"}}, "parameter_name": "{}"}}}})", name, weight));
    return *this;
  }
  /// A node of one tensor.
  GraphText& add_node(std::string_view target, const std::vector<std::string>& arguments, std::string_view result,
                      int dtype, const std::vector<int64_t>& shape) {
    nodes.push_back(node(target, arguments, {value(result)}));
    tensor_values.push_back(tensor(result, dtype, shape));
    return *this;
  }
  GraphText& add_output(std::string_view name) {
    outputs.push_back(value(name));
    output_specs.push_back(format(R"({{"user_output": {{"arg": {}}}}})", value(name)));
    return *this;
  }

  std::string graph() const {
    return format(
        R"({{"inputs": [{}], "outputs": [{}], "nodes": [{}], "tensor_values": {{{}}}, "sym_int_values": {{{}}}, )"
        R"("sym_bool_values": {{}}, "is_single_tensor_return": false, "custom_obj_values": {{}}, "sym_float_values": {{}}}})",
        join(inputs, ", "), join(outputs, ", "), join(nodes, ", "), join(tensor_values, ", "),
        join(sym_int_values, ", "));
  }
  std::string text() const {
    return format(
        R"({{"graph_module": {{"graph": {}, "signature": {{"input_specs": [{}], "output_specs": [{}]}}, )"
        R"("module_call_graph": [{{"fqn": "", "signature": {{"inputs": [], "outputs": [], "in_spec": "in", "out_spec": "out", )"
        R"("forward_arg_names": null}}}}], "metadata": {{}}, "treespec_namedtuple_fields": {{}}}}, "opset_version": {{"aten": 10}}, )"
        R"("range_constraints": {{{}}}, "schema_version": {}, "verifiers": ["TRAINING"], "torch_version": "2.13.0", )"
        R"("guards_code": [{}]}})",
        graph(), join(input_specs, ", "), join(output_specs, ", "), join(ranges, ", "), schema_version,
        join(guards, ", "));
  }
};

/// Schemas of the ops that tests call, as torch 2.13 prints them.
inline SchemaLibrary test_schemas() {
  SchemaLibrary library;
  for (std::string_view text : {
           "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
           "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
           "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
           "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
           "aten::maximum(Tensor self, Tensor other) -> Tensor",
           "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
           "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
           "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
           "aten::sqrt(Tensor self) -> Tensor",
           "aten::relu(Tensor self) -> Tensor",
           "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
           "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
           "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
           "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
           "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
           "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
           "memory_format=None) -> Tensor(a)",
           "aten::dropout(Tensor input, float p, bool train) -> Tensor",
           "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
           "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
           "ceil_mode=False, bool "
           "count_include_pad=True, int? divisor_override=None) -> Tensor",
           "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
           "device=None, bool? pin_memory=None) -> Tensor",
           "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
           "aten::sym_size.int(Tensor self, int dim) -> SymInt",
           "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
           "Tensor "
           "indices)",
       }) {
    (void)library.add(text);
  }
  return library;
}

/// Reads one graph as component "model"; weights become shape_only().
inline Result<Component> read_test_graph(std::string_view text, Program& program, Diagnostics* diagnostics = nullptr) {
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse(text, "model.json"));
  SchemaLibrary library = test_schemas();
  GraphJsonOptions options;
  options.schemas = &library;
  options.diagnostics = diagnostics;
  options.bind_weight = [&](WeightKind kind, std::string_view name, DType dtype,
                            const std::vector<int64_t>& shape) -> Result<WeightId> {
    for (uint32_t i = 0; i < program.weights.size(); ++i) {
      if (program.weights[i].name == name) return WeightId{i};
    }
    ARGOSY_TRY(TensorSourcePtr source, shape_only(dtype, shape, std::string(name)));
    program.weights.push_back(
        {.name = std::string(name), .kind = kind, .dtype = dtype, .shape = shape, .source = source, .tied_to = {}});
    return WeightId{static_cast<uint32_t>(program.weights.size() - 1)};
  };
  return read_graph_json(document.root(), "model", program, options);
}

/// The same, as a whole program.
inline Result<Program> read_test_program(std::string_view text) {
  Program program;
  ARGOSY_TRY(Component component, read_test_graph(text, program));
  program.components.push_back(std::move(component));
  return program;
}

}  // namespace argosy
