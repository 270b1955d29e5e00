// Apart from encode.cpp because both flatbuffers have tables of one name.
#include <flat_tensor_generated.h>

#include "backends/executorch/encode.h"
#include "backends/executorch/extended_header.h"
#include "backends/executorch/method_values.h"

namespace argosy::executorch {

std::string encode_data(const Document& document, const std::vector<Segment>& segments) {
  namespace fb = flat_tensor_flatbuffer;
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::DataSegment>> all_segments;
  uint64_t data_size = 0;
  for (const Segment& each : segments) {
    all_segments.push_back(fb::CreateDataSegment(builder, each.offset, each.size));
    data_size = std::max(data_size, each.offset + each.size);
  }
  std::vector<flatbuffers::Offset<fb::NamedData>> named;
  std::vector<bool> is_tensor(document.data.size());
  for (const ExternalTensor& each : external_tensors(document)) {
    is_tensor[each.data] = true;
    std::vector<uint8_t> dim_order;
    for (size_t i = 0; i < each.sizes.size(); ++i) dim_order.push_back(static_cast<uint8_t>(i));
    auto layout = fb::CreateTensorLayoutDirect(
        builder, static_cast<executorch_flatbuffer::ScalarType>(*scalar_type(each.dtype)), &each.sizes, &dim_order);
    named.push_back(fb::CreateNamedDataDirect(builder, each.name.c_str(), static_cast<uint32_t>(each.data), layout));
  }
  for (size_t i = 0; i < document.data.size(); ++i) {
    if (is_tensor[i]) continue;
    named.push_back(fb::CreateNamedDataDirect(builder, document.data[i].key.c_str(), static_cast<uint32_t>(i)));
  }
  fb::FinishFlatTensorBuffer(builder, fb::CreateFlatTensorDirect(builder, 0, &all_segments, &named));
  return with_data_header({reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()}, data_size);
}

}  // namespace argosy::executorch
