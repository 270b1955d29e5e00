#include "frontends/capture/samples.h"

#include <cstring>
#include <optional>

#include "base/text.h"

namespace argosy {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 24;  // of one tensor; samples are small

/// Numbers in [-1, 1), of no meaning.
Result<TensorSourcePtr> made_up(DType dtype, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(float));
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    float value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
  }
  ARGOSY_TRY(TensorSourcePtr source, literal(std::move(bytes), DType::kF32, shape));
  return converted(std::move(source), dtype);
}

/// Fixed sizes are the graph's, others the twin's. Nothing if the sizes are not those of a small tensor.
Result<std::optional<std::vector<int64_t>>> sample_shape(const JsonField& sizes, const TensorType& type) {
  ARGOSY_TRY_STATUS(sizes.require_array());
  if (sizes.view().size() != type.shape.size()) return sizes.error("not as many sizes as the input has");
  std::vector<int64_t> shape;
  int64_t count = 1, index = 0;
  for (JsonView item : sizes.view().items()) {
    JsonField field = sizes.item(item, index);
    ARGOSY_TRY(int64_t size, field.integer());
    if (size < 0) return field.error("a negative size");
    size = type.shape[static_cast<size_t>(index++)].as_integer().value_or(size);
    if (size > kMaxElements) return std::nullopt;
    count *= size;
    if (count > kMaxElements) return std::nullopt;
    shape.push_back(size);
  }
  return shape;
}

/// Null: no sample of this input can be had.
Result<TensorSourcePtr> sample_of(const JsonField& input, const TensorType& type, const ZipReader& zip,
                                  const SafetensorsEntry* stored) {
  JsonField sizes = input.member("sample");
  if (!sizes.is_valid()) return nullptr;
  ARGOSY_TRY(std::optional<std::vector<int64_t>> shape, sample_shape(sizes, type));
  if (!shape) return nullptr;
  if (kind_of(type.dtype) == DTypeKind::kFloat) return made_up(type.dtype, *shape);
  if (stored == nullptr || stored->dtype != type.dtype || stored->shape != *shape) return nullptr;
  return file_slice(zip.file(), stored->offset, type.dtype, *shape);
}

}  // namespace

Status read_samples(const JsonField& json, const ZipReader& zip, const StoredTensors& values, Component& component) {
  JsonField inputs = json.member("inputs");
  std::map<std::string, TensorSourcePtr> samples;
  int64_t index = 0;
  for (JsonView item : inputs.view().items()) {
    JsonField input = inputs.item(item, index++);
    ARGOSY_TRY(std::string_view name, input.member("name").string());
    for (const InputSpec& spec : component.inputs) {
      const TensorType* type = spec.value.is_valid() ? component.entry()[spec.value].tensor() : nullptr;
      if (spec.name != name || type == nullptr) continue;
      ARGOSY_TRY(TensorSourcePtr sample,
                 sample_of(input, *type, zip, values.find(format("{}/{}", component.name, name))));
      if (sample == nullptr) return {};
      samples.emplace(name, std::move(sample));
    }
  }
  component.samples = std::move(samples);
  return {};
}

}  // namespace argosy
