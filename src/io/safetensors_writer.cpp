#include "io/safetensors_writer.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/text.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace argosy {

Result<SafetensorsLayout> lay_out_safetensors(std::vector<NamedSource> tensors,
                                              std::vector<std::pair<std::string, std::string>> metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedSource& a, const NamedSource& b) {
    int a_bits = bits_of(a.source->dtype()), b_bits = bits_of(b.source->dtype());
    return a_bits != b_bits ? a_bits > b_bits : a.name < b.name;
  });
  std::vector<std::string_view> names;
  JsonWriter json;
  json.begin_object();
  if (!metadata.empty()) {
    std::sort(metadata.begin(), metadata.end());
    json.key("__metadata__").begin_object();
    for (const auto& [key, value] : metadata) json.key(key).value(value);
    json.end_object();
  }
  int64_t end = 0;
  for (const auto& [name, source] : tensors) {
    std::string_view dtype = safetensors_name(source->dtype());
    if (dtype.empty()) {
      return fail(
          ErrorCode::kUnsupportedFeature,
          format("safetensors has no name for {}, the dtype of tensor {}", to_text(source->dtype()), quoted(name)),
          "convert the tensor first");
    }
    if (name.empty() || name == "__metadata__" || !is_utf8(name)) {
      return fail(ErrorCode::kInvalidInput, format("{} cannot be the name of a tensor", quoted(name)));
    }
    names.push_back(name);
    auto next = checked_add(end, source->bytes());
    if (!next) return fail(ErrorCode::kInvalidInput, "the tensors of a safetensors file take more than 2^63 bytes");
    json.key(name).begin_object().key("dtype").value(dtype).key("shape").begin_array();
    for (int64_t dim : source->shape()) json.value(dim);
    json.end_array().key("data_offsets").begin_array().value(end).value(*next).end_array().end_object();
    end = *next;
  }
  json.end_object();
  std::sort(names.begin(), names.end());
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return fail(ErrorCode::kInvalidInput, format("two tensors of one file are named {}", quoted(*twice)));
  }
  std::string text = json.take();
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxSafetensorsHeader) {
    return fail(ErrorCode::kInvalidInput,
                format("{} tensors need a header of {}, more than safetensors allows", tensors.size(),
                       format_bytes(text.size())),
                "write several files");
  }
  SafetensorsLayout layout;
  uint64_t length = text.size();
  layout.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  layout.header += text;
  layout.tensors = std::move(tensors);
  layout.total_bytes = layout.header.size() + static_cast<uint64_t>(end);
  return layout;
}

Status write_safetensors(const SafetensorsLayout& layout, OutputFile& file, size_t scratch_bytes) {
  ARGOSY_TRY_STATUS(file.write(layout.header));
  for (const NamedSource& tensor : layout.tensors) ARGOSY_TRY_STATUS(file.append(*tensor.source, scratch_bytes));
  return {};
}

Status write_safetensors(const SafetensorsLayout& layout, const ByteSink& sink, size_t scratch_bytes) {
  ARGOSY_TRY_STATUS(sink(std::as_bytes(std::span(layout.header))));
  for (const NamedSource& tensor : layout.tensors) ARGOSY_TRY_STATUS(tensor.source->stream_to(sink, scratch_bytes));
  return {};
}

}  // namespace argosy
