#include <xnnpack_generated.h>

#include "backends/executorch/read.h"

namespace argosy::executorch {
namespace {

uint64_t number_at(std::span<const std::byte> bytes, size_t position, int count) {
  uint64_t number = 0;
  for (int i = 0; i < count; ++i)
    number |= std::to_integer<uint64_t>(bytes[position + static_cast<size_t>(i)]) << (8 * i);
  return number;
}

}  // namespace

DelegateContents xnnpack_contents(std::span<const std::byte> payload) {
  DelegateContents contents{.payload_bytes = payload.size()};
  // "XH00" at byte 4, then the header's length and where the flatbuffer is.
  if (payload.size() < 32 || number_at(payload, 4, 4) != 0x30304858) return contents;
  uint64_t offset = number_at(payload, 10, 4), size = number_at(payload, 14, 4);
  if (offset > payload.size() || size > payload.size() - offset) return contents;
  // A copy, because tables want an aligned beginning.
  std::vector<std::byte> table(payload.begin() + static_cast<ptrdiff_t>(offset),
                               payload.begin() + static_cast<ptrdiff_t>(offset + size));
  const auto* data = reinterpret_cast<const uint8_t*>(table.data());
  flatbuffers::Verifier verifier(data, table.size());
  if (!verifier.VerifyBuffer<fb_xnnpack::XNNGraph>(nullptr)) return contents;
  const auto* nodes = fb_xnnpack::GetXNNGraph(data)->xnodes();
  if (!nodes) return contents;
  contents.nodes = nodes->size();
  for (const fb_xnnpack::XNode* node : *nodes) {
    std::string_view kind = fb_xnnpack::EnumNameXNodeUnion(node->xnode_union_type());
    if (kind.starts_with("_")) kind.remove_prefix(1);
    if (kind.starts_with("XNN")) kind.remove_prefix(3);
    ++contents.kinds[std::string(kind)];
  }
  return contents;
}

}  // namespace argosy::executorch
