#include "faults/fault.h"

namespace argosy::sabotage {

std::vector<const Fault*> all_faults() {
  std::vector<const Fault*> all;
  for (std::span<const Fault> family :
       {attention_faults(), block_faults(), document_faults(), graph_faults(), layer_faults(), mask_faults(),
        media_faults(), quantized_faults(), state_faults(), weight_faults()}) {
    for (const Fault& fault : family) all.push_back(&fault);
  }
  return all;
}

}  // namespace argosy::sabotage
