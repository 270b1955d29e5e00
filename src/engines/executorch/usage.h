#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace argosy::engines {

/// A tensor that a method of a program takes.
struct ProgramInput {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> largest;  // sizes
};

struct ProgramMethod {
  std::string name;
  std::vector<ProgramInput> inputs;
};

/// The parts of an ExecuTorch program that callers must know.
struct ProgramFacts {
  std::vector<ProgramMethod> methods;  // that compute
  std::vector<std::string> kernels;    // "llama::update_cache", of all methods
  bool has_data_file = false;          // model.ptd beside model.pte
  bool has_tokenizer = false;          // tokenizer.json beside it
};

/// Markdown with Python that runs the program as it is, in its folder: texts in the LLM runner where the program is for
/// that, else one call of the first method.
std::string executorch_usage(const ProgramFacts& facts);

}  // namespace argosy::engines
