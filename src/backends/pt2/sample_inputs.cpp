#include "backends/pt2/sample_inputs.h"

#include "base/text.h"
#include "io/zip.h"

namespace argosy {
namespace {

constexpr size_t kScratch = size_t{1} << 20;

// The class by which torch's pickles name the dtype of a storage; empty if there is none here.
std::string_view storage_class(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "DoubleStorage";
    case DType::kF32: return "FloatStorage";
    case DType::kF16: return "HalfStorage";
    case DType::kBF16: return "BFloat16Storage";
    case DType::kI64: return "LongStorage";
    case DType::kI32: return "IntStorage";
    case DType::kI16: return "ShortStorage";
    case DType::kI8: return "CharStorage";
    case DType::kU8: return "ByteStorage";
    case DType::kBool: return "BoolStorage";
    default: return "";
  }
}

/// As much of Python's pickle format, protocol 2, as a dict of tensors needs.
class Pickle {
 public:
  Pickle() { bytes_ = "\x80\x02"; }
  Pickle& code(char opcode) {
    bytes_ += opcode;
    return *this;
  }
  Pickle& global(std::string_view module, std::string_view name) {
    bytes_ += format("c{}\n{}\n", module, name);
    return *this;
  }
  Pickle& text(std::string_view value) {
    bytes_ += 'X';
    little_endian(value.size(), 4);
    bytes_ += value;
    return *this;
  }
  Pickle& integer(int64_t value) {
    bytes_ += "\x8a\x08";  // a long of eight bytes
    little_endian(static_cast<uint64_t>(value), 8);
    return *this;
  }
  Pickle& integers(const std::vector<int64_t>& values) {
    code('(');
    for (int64_t value : values) integer(value);
    return code('t');
  }
  std::string take() { return std::move(bytes_); }

 private:
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  std::string bytes_;
};

void add_tensor(Pickle& pickle, const TensorSource& source, std::string_view key) {
  std::vector<int64_t> shape(source.shape().begin(), source.shape().end()), strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  pickle.global("torch._utils", "_rebuild_tensor_v2").code('(');
  pickle.code('(').text("storage").global("torch", storage_class(source.dtype())).text(key).text("cpu");
  pickle.integer(source.elements()).code('t').code('Q');
  pickle.integer(0).integers(shape).integers(strides).code('\x89');  // offset, sizes, strides, no gradient
  pickle.global("collections", "OrderedDict").code(')').code('R');   // no hooks
  pickle.code('t').code('R');
}

}  // namespace

Result<std::string> torch_sample_inputs(const Component& component) {
  std::vector<const TensorSource*> sources;
  Pickle pickle;
  pickle.code(')').code('}').code('(');
  for (const InputSpec& input : component.inputs) {
    auto sample = component.samples.find(input.name);
    if (sample == component.samples.end() || storage_class(sample->second->dtype()).empty()) return std::string();
    add_tensor(pickle.text(input.name), *sample->second, format("{}", sources.size()));
    sources.push_back(sample->second.get());
  }
  pickle.code('u').code('\x86').code('.');
  std::string archive;
  ZipWriter zip([&](std::span<const std::byte> bytes) -> Status {
    archive.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  });
  ARGOSY_TRY_STATUS(zip.add("archive/data.pkl", pickle.take()));
  ARGOSY_TRY_STATUS(zip.add("archive/byteorder", "little"));
  for (size_t i = 0; i < sources.size(); ++i) {
    ARGOSY_TRY_STATUS(zip.add(format("archive/data/{}", i), *sources[i], kScratch));
  }
  ARGOSY_TRY_STATUS(zip.add("archive/version", "3\n"));
  ARGOSY_TRY_STATUS(zip.finish());
  return archive;
}

}  // namespace argosy
