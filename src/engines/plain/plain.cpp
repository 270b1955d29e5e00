#include "engines/plain/plain.h"

#include <map>
#include <set>

#include "base/text.h"
#include "engines/companions.h"

namespace argosy::engines {
namespace {

/// The names of a capture's dtype in ONNX Runtime and numpy.
struct TypeName {
  std::string_view dtype, runtime, numpy;
};
constexpr TypeName kTypes[] = {
    {"f32", "float", "float32"}, {"f16", "float16", "float16"}, {"f64", "double", "float64"}, {"i64", "int64", "int64"},
    {"i32", "int32", "int32"},   {"u8", "uint8", "uint8"},      {"bool", "bool", "bool_"},
};

/// Python that calls the first graph with the sizes of the capture's sample call; empty where it has none.
std::string usage(const ComponentInterface& component, std::string_view file) {
  std::map<std::string, int64_t> sizes;
  std::set<std::string> types;
  for (const Port& port : component.inputs) {
    if (port.sample.size() != port.dims.size()) return {};
    for (size_t i = 0; i < port.dims.size(); ++i) {
      const auto* name = std::get_if<std::string>(&port.dims[i]);
      if (name == nullptr) continue;
      if (name->empty()) return {};
      sizes.emplace(*name, port.sample[i]);
    }
    for (const TypeName& type : kTypes) {
      if (type.dtype == port.dtype) types.insert(format("\"tensor({})\": numpy.{}", type.runtime, type.numpy));
    }
    // Its files are float32 unless told otherwise.
    if (port.dtype == "bf16") types.insert("\"tensor(float)\": numpy.float32");
  }
  std::vector<std::string> known;
  for (const auto& [name, size] : sizes) known.push_back(format("\"{}\": {}", name, size));
  return format(R"(In this folder; `bundle.json` says what each input and output is:

```python
import numpy
import onnxruntime

session = onnxruntime.InferenceSession("{}")
sizes = {{{}}}
types = {{{}}}
inputs = {{}}
for each in session.get_inputs():
    shape = [size if isinstance(size, int) else sum(sizes[part] for part in size.split(" + ")) for size in each.shape]
    inputs[each.name] = numpy.ones(shape, types[each.type])
outputs = session.run(None, inputs)
print({{each.name: value.shape for each, value in zip(session.get_outputs(), outputs)}})
```
)",
                file, join(known, ", "), join(std::vector<std::string>(types.begin(), types.end()), ", "));
}

}  // namespace

Result<BundlePlan> plan_plain(const SourceModel& model) {
  BundlePlan plan;
  for (const ComponentInterface& component : model.components) {
    auto named = model.graph_files.find(component.name);
    std::string file = named == model.graph_files.end() ? format("{}.onnx", component.name) : named->second;
    plan.graphs.push_back({std::move(file), component.name, {}, "model.onnx.data"});
  }
  plan.copied = companion_files(model);
  if (!model.components.empty()) plan.usage = usage(model.components[0], plan.graphs[0].file);
  return plan;
}

}  // namespace argosy::engines
