// Programs of ExecuTorch: memory, constants, instructions.

#include <algorithm>
#include <map>

#include "faults/fault.h"

namespace argosy::sabotage {
namespace {

using executorch::Document;
using executorch::Method;

uint64_t bytes_of(const executorch::Tensor& tensor) {
  uint64_t elements = 1;
  for (int32_t size : tensor.sizes) elements *= static_cast<uint64_t>(size);
  return elements * 4;  // only compared
}

bool is_scratch(const Method& method, executorch::ValueIndex index) {
  const auto* tensor = std::get_if<executorch::Tensor>(&method.values[static_cast<size_t>(index)]);
  if (tensor == nullptr || tensor->storage != executorch::Storage::kPlanned) return false;
  if (tensor->alias_of != executorch::kNoValue || tensor->dtype != DType::kF32) return false;
  auto is_alias = [&](const executorch::Value& value) {
    const auto* other = std::get_if<executorch::Tensor>(&value);
    return other != nullptr && other->alias_of == index;
  };
  return std::ranges::find(method.inputs, index) == method.inputs.end() &&
         std::ranges::find(method.outputs, index) == method.outputs.end() &&
         !std::ranges::any_of(method.values, is_alias);
}

/// A result that is still wanted lies where another is written.
Result<bool> overlap_memory(Document& document) {
  for (Method& method : document.methods) {
    std::map<executorch::ValueIndex, std::pair<size_t, size_t>> lives;
    for (size_t i = 0; i < method.instructions.size(); ++i) {
      const std::vector<executorch::ValueIndex>* arguments = nullptr;
      if (const auto* call = std::get_if<executorch::KernelCall>(&method.instructions[i])) arguments = &call->arguments;
      if (const auto* call = std::get_if<executorch::DelegateCall>(&method.instructions[i]))
        arguments = &call->arguments;
      if (arguments == nullptr) continue;
      for (executorch::ValueIndex index : *arguments) {
        if (index >= 0 && is_scratch(method, index)) lives.try_emplace(index, i, i).first->second.second = i;
      }
    }
    for (const auto& [wanted, life] : lives) {
      for (const auto& [other, other_life] : lives) {
        if (other_life.first <= life.first || other_life.first >= life.second) continue;
        executorch::Tensor &a = method.tensor(wanted), &b = method.tensor(other);
        if (bytes_of(a) > bytes_of(b) || a.offset == b.offset) continue;
        a.offset = b.offset;
        return true;
      }
    }
  }
  return false;
}

Result<bool> cross_data(Document& document) {
  for (size_t i = 0; i < document.data.size(); ++i) {
    TensorSourcePtr& first = document.data[i].source;
    if (first->elements() < 32) continue;
    for (size_t j = i + 1; j < document.data.size(); ++j) {
      TensorSourcePtr& second = document.data[j].source;
      if (first->dtype() != second->dtype() || !std::ranges::equal(first->shape(), second->shape())) continue;
      std::swap(first, second);
      return true;
    }
  }
  return false;
}

/// The first kernel call whose two operands have the same sizes gets them the other way round.
Result<bool> swap_operands(Document& document) {
  for (Method& method : document.methods) {
    for (executorch::Instruction& instruction : method.instructions) {
      auto* call = std::get_if<executorch::DelegateCall>(&instruction);
      if (call == nullptr || call->arguments.size() < 3) continue;
      auto tensor = [&](size_t i) {
        return std::get_if<executorch::Tensor>(&method.values[static_cast<size_t>(call->arguments[i])]);
      };
      const executorch::Tensor *first = tensor(0), *second = tensor(1);
      if (first == nullptr || second == nullptr || call->arguments[0] == call->arguments[1]) continue;
      if (first->sizes != second->sizes || first->dtype != second->dtype) continue;
      std::swap(call->arguments[0], call->arguments[1]);
      return true;
    }
  }
  return false;
}

constexpr Fault kDocumentFaults[] = {
    {.name = "memory-overlap", .what = "two results that are both wanted share memory", .executorch = overlap_memory},
    {.name = "data-crossed", .what = "two constants of a program are each other", .executorch = cross_data},
    {.name = "operands-swapped", .what = "a delegate's first two operands are swapped", .executorch = swap_operands},
};

}  // namespace

std::span<const Fault> document_faults() { return kDocumentFaults; }

}  // namespace argosy::sabotage
