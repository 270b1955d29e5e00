#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "backends/onnx/translations.h"
#include "bindings.h"
#include "driver/onnx/export_live_onnx.h"
#include "live_weights.h"
#include "passes/legalise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace argosy {
namespace {

WeightExposure exposure_of(bool is_stored, bool is_input) {
  if (!is_stored) return WeightExposure::kInputs;
  return is_input ? WeightExposure::kStoredAndOverride : WeightExposure::kStored;
}

LiveOnnxModel lower_model(const std::filesystem::path& capture, const std::vector<TensorTuple>& tensors,
                          const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, int opset,
                          bool optimize) {
  std::vector<LiveTensor> weights = live_weights(tensors);
  onnx::LoweringOptions options;
  options.opset = opset;
  if (!optimize) options.optimize = onnx::Optimize::kOff;
  Diagnostics diagnostics;
  Result<LiveOnnxModel> model = [&] {
    nb::gil_scoped_release release;
    return lower_live(capture, weights, inputs, outputs, options, diagnostics);
  }();
  if (!model) raise_all(model.error(), diagnostics);
  return *std::move(model);
}

onnx::Model exposed(const LiveOnnxModel& live, bool is_stored, bool is_input) {
  onnx::Model model = live.model;  // structs and shared recipes
  expose_weights(model, exposure_of(is_stored, is_input));
  return model;
}

nb::bytes to_bytes(const LiveOnnxModel& live, bool is_stored, bool is_input) {
  Result<std::string> bytes = [&] {
    nb::gil_scoped_release release;
    return live_model_bytes(exposed(live, is_stored, is_input));
  }();
  std::string text = unwrap(std::move(bytes));
  return nb::bytes(text.data(), text.size());
}

void save_model(const LiveOnnxModel& live, const std::filesystem::path& path, bool external_data, bool is_stored,
                bool is_input) {
  Status status = [&] {
    nb::gil_scoped_release release;
    return save_live_model(exposed(live, is_stored, is_input), path, external_data);
  }();
  if (!status) raise(status.error());
}

std::vector<std::string> names_of(const onnx::Model& model, const std::vector<onnx::Ref>& refs) {
  std::vector<std::string> names;
  names.reserve(refs.size());
  for (onnx::Ref ref : refs) names.push_back(model[ref].name);
  return names;
}

}  // namespace

void bind_onnx(nb::module_& module) {
  nb::class_<LiveOnnxModel>(module, "OnnxModel", "A live model's graph as an ONNX model; weights are read in place.")
      .def_prop_ro("inputs",
                   [](const LiveOnnxModel& self) { return names_of(self.model, self.model.graphs.front().inputs); })
      .def_prop_ro("outputs",
                   [](const LiveOnnxModel& self) { return names_of(self.model, self.model.graphs.front().outputs); })
      .def_prop_ro(
          "weight_bytes",
          [](const LiveOnnxModel& self) {
            int64_t bytes = 0;
            for (const onnx::Initializer& each : self.model.initializers) bytes += each.tensor->bytes();
            return bytes;
          },
          "Of all tensors that are stored with the model.")
      .def_ro("ops", &LiveOnnxModel::ops, "The ATen ops that were left to translate.")
      .def_ro("notes", &LiveOnnxModel::notes)
      .def("to_bytes", to_bytes, "store_weights"_a = true, "weights_as_inputs"_a = false, "The file, in memory.")
      .def("save", save_model, "path"_a, "external_data"_a = true, "store_weights"_a = true,
           "weights_as_inputs"_a = false);

  module.def("lower_onnx", lower_model, "capture"_a, "tensors"_a, "inputs"_a, "outputs"_a,
             "opset"_a = onnx::kDefaultOpset, "optimize"_a = true,
             "Lowers the capture of one graph. Tensors are (name, dtype, shape, address, bytes, identity) and must "
             "outlive the result.");
  module.def(
      "onnx_translations",
      [] {
        nb::dict rows;
        for (const onnx::Translation& row : onnx::translations()) {
          rows[nb::str(row.op.data(), row.op.size())] = nb::str(row.why.data(), row.why.size());
        }
        return rows;
      },
      "All ops that have a translation to ONNX, sorted, each with the reason why it is not decomposed, or \"\".");
  module.def(
      "decomposed_ops",
      [] {
        std::vector<std::string> names;
        for (std::string_view op : decomposed_ops()) names.emplace_back(op);
        return names;
      },
      "The names of all ops that can be written in others, for every backend, sorted.");
  module.attr("ONNX_DEFAULT_OPSET") = onnx::kDefaultOpset;
  module.attr("ONNX_OPSETS") = nb::make_tuple(onnx::kMinOpset, onnx::kMaxOpset);
}

}  // namespace argosy
