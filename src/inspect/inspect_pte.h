#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/executorch/memory_plan.h"
#include "backends/executorch/read.h"
#include "inspect/inspect.h"

namespace argosy {

/// The delegates of one backend in a method.
struct BackendReport {
  std::string backend;
  uint64_t delegates = 0, nodes = 0, payload_bytes = 0;
  std::vector<OpCount> kinds;  // of nodes, most frequent first, then by name
};

struct PteMethodReport {
  std::vector<OpCount> kernels;  // calls, most frequent first, then by name
  uint64_t delegate_calls = 0;
  std::vector<BackendReport> backends;          // by name
  std::vector<executorch::Lifetime> lifetimes;  // of the tensors of arena 1; none if jumps make that too much work
  uint64_t peak_bytes = 0;                      // the most that lives at once in arena 1
  uint32_t peak_instruction = 0;                // where
};

/// A .pte file as it was read, and what is summed over it.
struct PteReport {
  executorch::ProgramFile file;
  std::vector<PteMethodReport> methods;  // as those of the file
};

Result<PteReport> inspect_pte(const std::filesystem::path& path);

/// A page of its own (no scripts, nothing loaded) that shows the memory of each method: instructions from left to
/// right, bytes from bottom to top, a rectangle for each tensor that tells what it is when pointed at; the peak is
/// marked. Very many tensors are cut to the largest 20,000.
std::string memory_html(const std::string& title, const PteReport& report);

/// "f32[4, 8]", or with sizes that vary "f32[≤4, ≤8]".
std::string tensor_text(const executorch::Tensor& tensor);
/// A value of a method: a tensor as above, a number, a text, "none".
std::string value_text(const executorch::Method& method, executorch::ValueIndex index);

}  // namespace argosy
