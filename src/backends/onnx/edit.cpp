#include "backends/onnx/edit.h"

#include <algorithm>
#include <cstring>

#include "backends/onnx/lowering.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

Ref find_port(const Model& model, const std::vector<Ref>& ports, std::string_view name) {
  for (Ref ref : ports) {
    if (model[ref].name == name) return ref;
  }
  return {};
}

Status rename(Model& model, Ref port, std::string_view kind, std::string_view from, std::string_view to) {
  if (!port.is_valid()) return fail(no_such_port(model, kind, from));
  if (from == to) return {};
  if (find_input(model, to).is_valid() || find_output(model, to).is_valid()) {
    return fail(ErrorCode::kInvalidInput, format("the {} {} cannot be called {}: the graph has that name already", kind,
                                                 quoted(from), quoted(to)));
  }
  model[port].name = to;
  return {};
}

Ref add_literal(Model& model, const std::vector<int64_t>& values, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(values.size() * sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::vector<Dim> dims(shape.begin(), shape.end());
  auto source = literal(std::move(bytes), DType::kI64, std::move(shape));
  ARGOSY_CHECK(source.has_value(), "integers that are no tensor");
  Ref ref = add_value(model, {"", DType::kI64, std::move(dims)});
  model.initializers.push_back({ref, *std::move(source)});
  return ref;
}

Ref split(Model& model, std::vector<Ref>& ports, Ref port) {
  Ref outer = add_value(model, model[port]);
  model[port].name.clear();
  std::replace(ports.begin(), ports.end(), port, outer);
  return outer;
}

}  // namespace

Ref find_input(const Model& model, std::string_view name) { return find_port(model, model.graphs[0].inputs, name); }
Ref find_output(const Model& model, std::string_view name) { return find_port(model, model.graphs[0].outputs, name); }

Error no_such_port(const Model& model, std::string_view kind, std::string_view name) {
  const Graph& graph = model.graphs[0];
  std::vector<std::string> names;
  for (Ref ref : kind == "input" ? graph.inputs : graph.outputs) names.push_back(model[ref].name);
  return {ErrorCode::kInvalidInput, format("the graph has no {} {}", kind, quoted(name)),
          format("it has {}", join(names, ", "))};
}

Ref add_value(Model& model, Value value) {
  model.values.push_back(std::move(value));
  return Ref{static_cast<uint32_t>(model.values.size() - 1)};
}

Ref add_ints(Model& model, const std::vector<int64_t>& values) {
  return add_literal(model, values, {static_cast<int64_t>(values.size())});
}
Ref add_integer(Model& model, int64_t value) { return add_literal(model, {value}, {}); }

Ref split_input(Model& model, Ref input) { return split(model, model.graphs[0].inputs, input); }
Ref split_output(Model& model, Ref output) { return split(model, model.graphs[0].outputs, output); }

Status rename_input(Model& model, std::string_view from, std::string_view to) {
  return rename(model, find_input(model, from), "input", from, to);
}

Status rename_output(Model& model, std::string_view from, std::string_view to) {
  return rename(model, find_output(model, from), "output", from, to);
}

Status drop_output(Model& model, std::string_view name) {
  Ref output = find_output(model, name);
  if (!output.is_valid()) return fail(no_such_port(model, "output", name));
  std::erase(model.graphs[0].outputs, output);
  model[output].name.clear();
  eliminate_dead_nodes(model);
  return {};
}

Status widen_state(Model& model, std::string_view input, std::string_view output, int64_t size) {
  Ref in = find_input(model, input), out = find_output(model, output);
  if (!in.is_valid()) return fail(no_such_port(model, "input", input));
  if (!out.is_valid()) return fail(no_such_port(model, "output", output));
  const auto& shape = model[in].shape;
  const int64_t* inner = shape && !shape->empty() ? std::get_if<int64_t>(&shape->back()) : nullptr;
  if (inner == nullptr || *inner > size) {
    return fail(ErrorCode::kInvalidInput,
                format("the state {} cannot be made {} wide at its last dim", quoted(input), size));
  }
  auto rank = static_cast<int64_t>(shape->size());
  int64_t width = *inner;
  Ref wide_in = split_input(model, in);
  model[wide_in].shape->back() = size;
  Node cut{"Slice", "", {wide_in, add_ints(model, {0}), add_ints(model, {width}), add_ints(model, {rank - 1})}, {in}};
  Ref wide_out = split_output(model, out);
  if (model[wide_out].shape && !model[wide_out].shape->empty()) model[wide_out].shape->back() = size;
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank));
  pads.back() = size - width;
  Node fill{"Pad", "", {out, add_ints(model, pads)}, {wide_out}};
  std::vector<Node>& nodes = model.graphs[0].nodes;
  nodes.insert(nodes.begin(), std::move(cut));
  nodes.push_back(std::move(fill));
  return {};
}

Status postpone_output(Model& model, std::string_view output, std::string_view last) {
  Ref out = find_output(model, output), other = find_output(model, last);
  if (!out.is_valid()) return fail(no_such_port(model, "output", output));
  if (!other.is_valid()) return fail(no_such_port(model, "output", last));
  std::vector<int64_t> sizes;
  for (const Dim& dim : model[out].shape.value_or(std::vector<Dim>())) {
    const int64_t* size = std::get_if<int64_t>(&dim);
    if (size != nullptr) sizes.push_back(*size);
  }
  if (!model[out].shape || sizes.size() + 1 != model[out].shape->size()) {
    return fail(ErrorCode::kInvalidInput,
                format("the output {} cannot be postponed: more than one of its sizes varies", quoted(output)));
  }
  // A copy that waits for a size of the other output. Engines cannot know that the size is the same all the time.
  Ref postponed = split_output(model, out);
  Ref batch = add_value(model, {"", DType::kI64, {{Dim(int64_t{1})}}});
  Ref shape = add_value(model, {"", DType::kI64, {{Dim(static_cast<int64_t>(sizes.size() + 1))}}});
  Ref rest = add_ints(model, sizes);
  std::vector<Node>& nodes = model.graphs[0].nodes;
  nodes.push_back({"Shape", "", {other}, {batch}, {{"start", int64_t{0}}, {"end", int64_t{1}}}});
  nodes.push_back({"Concat", "", {batch, rest}, {shape}, {{"axis", int64_t{0}}}});
  nodes.push_back({"Reshape", "", {out, shape}, {postponed}});
  return {};
}

}  // namespace argosy::onnx
