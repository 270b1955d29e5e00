#include "engines/genai/genai.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "engines/companions.h"
#include "engines/genai/config.h"
#include "engines/genai/decoder.h"
#include "engines/genai/vision.h"
#include "engines/genai/whisper.h"
#include "engines/rewrite_json.h"
#include "engines/tokenizer_config.h"

namespace argosy::engines {
namespace {

using namespace genai;

constexpr std::string_view kUsage = R"(In this folder:

```python
import onnxruntime_genai as og

model = og.Model(".")
tokenizer = og.Tokenizer(model)
tokenizer.update_options(add_special_tokens="true")
params = og.GeneratorParams(model)
params.set_search_options(max_length={})
generator = og.Generator(model, params)
generator.append_tokens(tokenizer.encode("Once upon a time"))
while not generator.is_done():
    generator.generate_next_token()
print(tokenizer.decode(generator.get_sequence(0)))
```
)";

Result<BundlePlan> plan_text(const SourceModel& model, const ComponentInterface& decode) {
  ARGOSY_TRY(DecoderPlan decoder, plan_decoder(model, decode));
  Config config;
  config.type = decoder_type(model, decoder);
  config.context_length = context_length(model);
  config.vocab_size = decoder.vocab_size;
  config.sections.push_back(std::move(decoder.section));
  BundlePlan plan;
  plan.graphs.push_back(std::move(decoder.graph));
  plan.files.push_back({std::string(kConfigFile), config_text(config, model)});
  plan.longest_text = config.context_length;
  plan.copied = companion_files(model);
  plan.usage = format(kUsage, std::min<int64_t>(200, config.context_length));
  plan.notes = std::move(decoder.notes);
  return plan;
}

Result<BundlePlan> plan_kind(const SourceModel& model) {
  const ComponentInterface* decode = model.component("decode");
  if (decode != nullptr && decode->input("input_ids") != nullptr) return plan_text(model, *decode);
  if (is_vision_language(model)) return plan_vision_language(model);
  if (is_whisper(model)) return plan_whisper(model);
  std::vector<std::string> names;
  for (const ComponentInterface& component : model.components) names.push_back(component.name);
  return fail(ErrorCode::kUnsupportedFeature,
              format("ONNX Runtime GenAI cannot run {}: it generates text, and this model consists of {}",
                     model.model_class, join(names, ", ")),
              "--for plain writes models for ONNX Runtime itself");
}

}  // namespace

// Caches grow in place where the engine's own attention continues all of them: then it allocates them once.
Status finish_genai(const SourceModel& model, const std::vector<WrittenGraph>& graphs, BundlePlan& plan) {
  if (model.device != nullptr && !model.device->shares_caches) return {};
  for (const WrittenGraph& graph : graphs) {
    auto planned = std::ranges::find(plan.graphs, graph.file, &GraphPlan::file);
    const ComponentInterface* component = planned == plan.graphs.end() ? nullptr : model.component(planned->component);
    if (component == nullptr || component->states.empty() || graph.kept_caches != component->states.size()) continue;
    std::erase_if(plan.notes, [](const std::string& note) { return note.starts_with(kPaddingNote); });
    for (TextFile& file : plan.files) {
      if (file.name != kConfigFile) continue;
      ARGOSY_TRY(JsonDocument config, JsonDocument::parse(file.text, kConfigFile));
      file.text = rewritten(config.root(), std::array{JsonChange{{"search", "past_present_share_buffer"}, true}});
    }
  }
  return {};
}

Result<BundlePlan> plan_genai(const SourceModel& model) {
  ARGOSY_TRY(BundlePlan plan, plan_kind(model));
  add_tokenizer_config(model, plan);
  if (model.token_ids("eos_token_id").empty())
    plan.notes.emplace_back("the model names no token that ends a text; the engine takes the one with id 0 for that");
  return plan;
}

}  // namespace argosy::engines
