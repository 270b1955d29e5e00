#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/text.h"
#include "bindings.h"
#include "driver/executorch/export_live_executorch.h"
#include "live_weights.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace argosy {
namespace {

LiveExecutorchProgram lower_program(const std::filesystem::path& capture, const std::vector<TensorTuple>& tensors,
                                    const std::string& recipe, const std::string& shape) {
  std::vector<LiveTensor> weights = live_weights(tensors);
  ExecutorchOptions options;
  options.lowering.recipe = recipe == "portable" ? executorch::Recipe::kPortable : executorch::Recipe::kXnnpack;
  options.shape = shape;
  Diagnostics diagnostics;
  Result<LiveExecutorchProgram> program = [&] {
    nb::gil_scoped_release release;
    return lower_live_executorch(capture, weights, options, diagnostics);
  }();
  if (!program) raise_all(program.error(), diagnostics);
  return *std::move(program);
}

void save_program(const LiveExecutorchProgram& program, const std::filesystem::path& path) {
  Status status = [&] {
    nb::gil_scoped_release release;
    return save_live_program(program, path);
  }();
  if (!status) raise(status.error());
}

}  // namespace

void bind_executorch(nb::module_& module) {
  nb::class_<LiveExecutorchProgram>(module, "ExecutorchModel",
                                    "A live model's graph as a program of ExecuTorch; weights are read in place.")
      .def_prop_ro(
          "arenas", [](const LiveExecutorchProgram& self) { return self.document.methods.front().arenas; },
          "Bytes of memory that the method needs, by arena.")
      .def_ro("notes", &LiveExecutorchProgram::notes)
      .def("save", save_program, "path"_a);

  module.def(
      "lower_executorch", lower_program, "capture"_a, "tensors"_a, "recipe"_a, "shape"_a,
      "Lowers the capture of one graph. Tensors are (name, dtype, shape, address, bytes, identity) and must "
      "outlive the result. The shape has the largest size of each dim that varies: \"batch=0..4,sequence=0..256\".");
}

}  // namespace argosy
