#include "engines/executorch/usage.h"

#include <algorithm>

#include "base/text.h"

namespace argosy::engines {
namespace {

/// Imports that register kernels that the runtime itself lacks, by the prefix of their names.
struct Library {
  std::string_view prefix, import;
};
constexpr Library kLibraries[] = {
    {"llama::", "import executorch.extension.llm.custom_ops.custom_ops  # kernels of attention and cache"},
    {"quantized_decomposed::", "import executorch.kernels.quantized  # kernels of weights in few bits"},
};

std::string imports(const ProgramFacts& facts) {
  std::string lines;
  for (const Library& library : kLibraries) {
    if (std::ranges::any_of(facts.kernels, [&](const auto& kernel) { return kernel.starts_with(library.prefix); }))
      lines += format("{}\n", library.import);
  }
  return lines;
}

/// Whether the LLM runner can call it: tokens and their positions as inputs, states inside.
bool is_for_runner(const ProgramFacts& facts) {
  if (facts.methods.size() != 1 || !facts.has_tokenizer) return false;
  const ProgramMethod& method = facts.methods[0];
  return method.name == "forward" && method.inputs.size() == 2 && method.inputs[0].name == "input_ids" &&
         method.inputs[1].name == "cache_position";
}

/// torch's name of it.
std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "bool";
    case DType::kU8: return "uint8";
    case DType::kI32: return "int32";
    case DType::kI64: return "int64";
    case DType::kF16: return "float16";
    case DType::kBF16: return "bfloat16";
    case DType::kF64: return "float64";
    default: return "float32";
  }
}

/// One line for each tensor; neighbours that are alike share one.
std::string input_lines(const ProgramMethod& method) {
  std::string lines;
  for (size_t i = 0; i < method.inputs.size();) {
    const ProgramInput& input = method.inputs[i];
    size_t end = i + 1;
    while (end < method.inputs.size() && method.inputs[end].dtype == input.dtype &&
           method.inputs[end].largest == input.largest)
      ++end;
    std::vector<std::string> sizes;
    for (int64_t size : input.largest) sizes.push_back(format("{}", size));
    std::string_view maker = kind_of(input.dtype) == DTypeKind::kFloat ? "zeros" : "ones";
    std::string tensor = format("torch.{}([{}], dtype=torch.{})", maker, join(sizes, ", "), torch_name(input.dtype));
    if (end == i + 1) {
      lines += format("    {},  # {}\n", tensor, input.name);
    } else {
      lines += format("    *[{}] * {},  # {} to {}\n", tensor, end - i, input.name, method.inputs[end - 1].name);
    }
    i = end;
  }
  return lines;
}

}  // namespace

std::string executorch_usage(const ProgramFacts& facts) {
  if (facts.methods.empty()) return {};
  if (is_for_runner(facts)) {
    return format(R"(In this folder, in ExecuTorch's runner of language models:

```python
{}from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

runner = TextLLMRunner("model.pte", "tokenizer.json"{})
settings = GenerationConfig(max_new_tokens=32, temperature=0.0, echo=False)
runner.generate("Once upon a time", settings, lambda text: print(text, end=""))
```
)",
                  imports(facts), facts.has_data_file ? ", \"model.ptd\"" : "");
  }
  const ProgramMethod& method = facts.methods[0];
  return format(
      R"(In this folder; sizes are the largest that there is memory for, and which of them may be smaller is in `bundle.json`:

```python
import torch
{}from executorch.runtime import Runtime

program = Runtime.get().load_program("model.pte"{})
inputs = [
{}]
outputs = program.load_method("{}").execute(inputs)
print([output.shape for output in outputs])
```
)",
      imports(facts), facts.has_data_file ? ", data_path=\"model.ptd\"" : "", input_lines(method), method.name);
}

}  // namespace argosy::engines
