// Weights in blocks of integers, as ONNX Runtime's ops get them.

#include <algorithm>
#include <cstring>

#include "faults/bytes.h"
#include "faults/fault.h"

namespace argosy::sabotage {
namespace {

using Graphs = std::vector<onnx::NamedModel>;
using SourceEdit = Result<TensorSourcePtr> (*)(const TensorSourcePtr& source);

constexpr std::string_view kProduct = "com.microsoft.MatMulNBits", kLookup = "com.microsoft.GatherBlockQuantized",
                           kExperts = "com.microsoft.QMoE", kIntegers = ".MatMulInteger",
                           kNormal = "com.microsoft.MatMulBnb4";

/// Edits an input of the first node of that op that has it.
Result<bool> edit_input(Graphs& graphs, std::string_view op, size_t input, SourceEdit edit) {
  for (onnx::NamedModel& each : graphs) {
    for (onnx::Graph& graph : each.model.graphs) {
      for (onnx::Node& node : graph.nodes) {
        if (node.domain + "." + node.op != op || node.inputs.size() <= input) continue;
        auto found = std::ranges::find(each.model.initializers, node.inputs[input], &onnx::Initializer::value);
        if (found == each.model.initializers.end()) continue;
        ARGOSY_TRY(found->tensor, edit(found->tensor));
        return true;
      }
    }
  }
  return false;
}

Result<TensorSourcePtr> swap_halves(const TensorSourcePtr& source) {
  return with_bytes(*source, [](std::vector<std::byte>& bytes) {
    for (std::byte& each : bytes) each = each << 4 | each >> 4;
  });
}

/// A zero point more in every byte: of two nibbles, or of one number.
Result<TensorSourcePtr> add_to_nibbles(const TensorSourcePtr& source) {
  return with_bytes(*source, [](std::vector<std::byte>& bytes) {
    for (std::byte& each : bytes) {
      auto byte = std::to_integer<unsigned>(each);
      each = static_cast<std::byte>(std::min(15U, (byte >> 4) + 1) << 4 | std::min(15U, (byte & 15U) + 1));
    }
  });
}

Result<TensorSourcePtr> add_to_bytes(const TensorSourcePtr& source) {
  return with_bytes(*source, [](std::vector<std::byte>& bytes) {
    for (std::byte& each : bytes) each = static_cast<std::byte>(std::to_integer<unsigned>(each) + 1);
  });
}

Result<TensorSourcePtr> drop_lowest_bits(const TensorSourcePtr& source) {
  return with_bytes(*source, [](std::vector<std::byte>& bytes) {
    for (std::byte& each : bytes) each &= std::byte{0xFE};
  });
}

Result<TensorSourcePtr> move_along_rows(const TensorSourcePtr& source) { return shifted(source, 0); }

Result<TensorSourcePtr> turn_blocks(const TensorSourcePtr& source) {
  return reversed(source, static_cast<int>(source->shape().size()) - 1);
}

constexpr Fault kBlockFaults[] = {
    {.name = "normal-nibble-order",
     .what = "the halves of a weight's bytes are swapped, in NF4",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kNormal, 1, swap_halves); },
     .is_of_engine = true},
    {.name = "normal-scale-of-neighbour",
     .what = "blocks have their neighbour's scale, in NF4",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kNormal, 2, move_along_rows); },
     .is_of_engine = true},
    {.name = "onnx-nibble-order",
     .what = "the halves of a weight's bytes are swapped, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kProduct, 1, swap_halves); },
     .is_of_engine = true},
    {.name = "onnx-integers-one-more",
     .what = "every integer of a weight is one more, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kProduct, 1, add_to_nibbles); },
     .is_of_engine = true},
    {.name = "onnx-lowest-bit",
     .what = "bytes of a weight lack their lowest bit, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kProduct, 1, drop_lowest_bits); },
     .is_of_engine = true},
    {.name = "onnx-scale-of-neighbour",
     .what = "rows have their neighbour's scales, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kProduct, 2, move_along_rows); },
     .is_of_engine = true},
    {.name = "onnx-block-order",
     .what = "scales of a row's blocks are in the other order, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kProduct, 2, turn_blocks); },
     .is_of_engine = true},
    {.name = "onnx-zero-point",
     .what = "every zero point of a weight is one more, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kProduct, 3, add_to_nibbles); },
     .is_of_engine = true},
    {.name = "onnx-embedding-nibble-order",
     .what = "the halves of an embedding's bytes are swapped, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kLookup, 0, swap_halves); },
     .is_of_engine = true},
    {.name = "onnx-embedding-scale",
     .what = "tokens have their neighbour's scale, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kLookup, 2, move_along_rows); },
     .is_of_engine = true},
    {.name = "onnx-expert-scale",
     .what = "experts have their neighbour's scales, in ONNX Runtime's op",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kExperts, 3, move_along_rows); },
     .is_of_engine = true},
    {.name = "integers-one-more",
     .what = "every byte of a weight is one more, in MatMulInteger",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kIntegers, 1, add_to_bytes); }},
    {.name = "integers-columns",
     .what = "columns of a weight are in the other order, in MatMulInteger",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kIntegers, 1, turn_blocks); }},
    {.name = "integers-zero-point",
     .what = "every zero point of a weight is one more, in MatMulInteger",
     .onnx = [](Graphs& graphs) { return edit_input(graphs, kIntegers, 3, add_to_bytes); }},
};

}  // namespace

std::span<const Fault> block_faults() { return kBlockFaults; }

}  // namespace argosy::sabotage
