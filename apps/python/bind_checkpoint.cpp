#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>

#include "base/text.h"
#include "bindings.h"
#include "io/checkpoint.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace argosy {
namespace {

constexpr size_t kScratchBytes = size_t{8} << 20;

/// What the header says of one tensor; a copy, so that it outlives its checkpoint.
struct TensorInfo {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string file;
};

TensorInfo info_of(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  return {tensor.name, std::string(to_text(tensor.dtype)), tensor.shape, tensor.bytes,
          checkpoint.files()[tensor.file].string()};
}

const CheckpointTensor& find(const Checkpoint& checkpoint, std::string_view name) {
  const CheckpointTensor* tensor = checkpoint.find(name);
  // The failing lookup composes the message, with the nearest names.
  if (tensor == nullptr) raise(checkpoint.tensor(name).error());
  return *tensor;
}

Checkpoint open(const std::filesystem::path& path) {
  auto result = [&] {
    nb::gil_scoped_release release;
    return Checkpoint::open(path);
  }();
  return unwrap(std::move(result));
}

nb::bytes read(const Checkpoint& checkpoint, std::string_view name) {
  TensorSourcePtr source = unwrap(checkpoint.tensor(name));
  // Filled in place: nobody else can see the object yet, so that the GIL is not needed while the file is read.
  nb::bytes bytes = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, source->bytes()));
  if (!bytes.is_valid()) nb::raise_python_error();
  char* out = PyBytes_AsString(bytes.ptr());
  Status status = [&] {
    nb::gil_scoped_release release;
    return source->stream_to(
        [&out](std::span<const std::byte> block) -> Status {
          std::memcpy(out, block.data(), block.size());
          out += block.size();
          return {};
        },
        kScratchBytes);
  }();
  if (!status) raise(status.error());
  return bytes;
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  nb::class_<TensorInfo>(module, "TensorInfo", "What a checkpoint's header says of one tensor.")
      .def_ro("name", &TensorInfo::name)
      .def_ro("dtype", &TensorInfo::dtype, "Short name: \"bf16\", \"f32\", \"i64\" and the like.")
      .def_ro("shape", &TensorInfo::shape)
      .def_ro("bytes", &TensorInfo::bytes)
      .def_ro("file", &TensorInfo::file)
      .def("__repr__", [](const TensorInfo& info) {
        std::vector<std::string> dims;
        for (int64_t dim : info.shape) dims.push_back(std::to_string(dim));
        return format("TensorInfo({} {}[{}])", info.name, info.dtype, join(dims, ", "));
      });

  nb::class_<Checkpoint>(module, "Checkpoint",
                         "Weights of a model: one safetensors file, or a folder of shards with an index. Opening reads "
                         "headers only.")
      .def(
          "__init__", [](Checkpoint* self, const std::filesystem::path& path) { new (self) Checkpoint(open(path)); },
          "path"_a, "Opens a .safetensors file, an index (.safetensors.index.json) or a folder.")
      .def_prop_ro(
          "names",
          [](const Checkpoint& self) {
            std::vector<std::string> names;
            names.reserve(self.tensors().size());
            for (const CheckpointTensor& tensor : self.tensors()) names.push_back(tensor.name);
            return names;
          },
          "The names of all tensors, sorted.")
      .def_prop_ro(
          "tensors",
          [](const Checkpoint& self) {
            std::vector<TensorInfo> tensors;
            tensors.reserve(self.tensors().size());
            for (const CheckpointTensor& tensor : self.tensors()) tensors.push_back(info_of(self, tensor));
            return tensors;
          },
          "All tensors, sorted by name.")
      .def_prop_ro("total_bytes", &Checkpoint::total_bytes)
      .def_prop_ro("files", [](const Checkpoint& self) { return self.files(); })
      .def_prop_ro(
          "metadata",
          [](const Checkpoint& self) {
            return std::map<std::string, std::string>(self.metadata().begin(), self.metadata().end());
          },
          "The header's __metadata__.")
      .def("__len__", [](const Checkpoint& self) { return self.tensors().size(); })
      .def("__contains__", [](const Checkpoint& self, std::string_view name) { return self.find(name) != nullptr; })
      .def(
          "info", [](const Checkpoint& self, std::string_view name) { return info_of(self, find(self, name)); },
          "name"_a)
      .def(
          "shape", [](const Checkpoint& self, std::string_view name) { return find(self, name).shape; }, "name"_a)
      .def(
          "dtype", [](const Checkpoint& self, std::string_view name) { return to_text(find(self, name).dtype); },
          "name"_a)
      .def("tensor", read, "name"_a, "The tensor's bytes: row-major, little-endian, packed.");

  module.def("open_checkpoint", open, "path"_a, "The same as Checkpoint(path).");
}

}  // namespace argosy
