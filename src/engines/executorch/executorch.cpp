#include "engines/executorch/executorch.h"

#include "engines/companions.h"

namespace argosy::engines {
namespace {

constexpr std::string_view kTextUsage =
    R"(Exported with `--task text-generation`, the program runs in ExecuTorch's runner of language models:

```python
from executorch.extension.llm.custom_ops import custom_ops  # llama::custom_sdpa, llama::update_cache
from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

runner = TextLLMRunner("model.pte", "tokenizer.json")
runner.generate("Once upon a time", GenerationConfig(max_new_tokens=32, temperature=0.0), print)
```
)";

constexpr std::string_view kUsage = R"(```python
from executorch.runtime import Runtime

program = Runtime.get().load_program("model.pte")
print(program.method_names)
outputs = program.load_method("forward").execute([...])  # tensors, in the order of bundle.json
```
)";

}  // namespace

Result<BundlePlan> plan_executorch(const SourceModel& model) {
  BundlePlan plan;
  plan.copied = companion_files(model);
  bool is_decoder = model.component("decode") != nullptr && model.component("embedding") == nullptr;
  plan.usage = is_decoder ? kTextUsage : kUsage;
  return plan;
}

}  // namespace argosy::engines
