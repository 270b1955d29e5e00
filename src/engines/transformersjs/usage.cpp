#include "engines/transformersjs/usage.h"

#include <algorithm>

#include "base/text.h"
#include "engines/pipeline_task.h"

namespace argosy::engines::transformersjs {
namespace {

struct Example {
  std::string_view task, call;
};

// Samples at the model's rate.
constexpr std::string_view kSilence = "await run(new Float32Array(16000))";

constexpr Example kExamples[] = {
    {"text-generation", "await run('Once upon a time', { max_new_tokens: 32 })"},
    {"fill-mask", "await run('The goal of life is [MASK].')"},
    {"text-classification", "await run('I like this.')"},
    {"token-classification", "await run('Paris is in France.')"},
    {"question-answering", "await run('Where is Paris?', 'Paris is in France.')"},
    {"image-classification", "await run('image.png')"},
    {"object-detection", "await run('image.png')"},
    {"image-segmentation", "await run('image.png')"},
    {"depth-estimation", "await run('image.png')"},
    {"automatic-speech-recognition", kSilence},
    {"audio-classification", kSilence},
    {"text2text-generation", "await run('translate English to German: hello')"},
    {"image-to-text", "await run('image.png')"},
    {"zero-shot-image-classification", "await run('image.png', ['a cat', 'a dog'])"},
};

constexpr Example kFeatures = {"feature-extraction", "await run('A sentence.', { pooling: 'mean', normalize: true })"};

Example example_of(const SourceModel& model) {
  const auto* found = std::ranges::find(kExamples, pipeline_task(model), &Example::task);
  return found == std::end(kExamples) ? kFeatures : *found;
}

// Types whose processor takes pictures before the text; the others take the text first.
constexpr std::string_view kPicturesFirst[] = {"florence2", "lfm2_vl", "llava", "mistral3", "paligemma"};

/// A prompt with a picture or a sound.
std::string media_example(const SourceModel& model) {
  bool is_sound = model.component("image_encoder") == nullptr;
  bool first = std::ranges::find(kPicturesFirst, model.model_type()) != std::end(kPicturesFirst);
  std::string_view medium = is_sound ? "new Float32Array(16000)" : "await RawImage.read('image.png')";
  return format(R"(import {{ AutoProcessor, {0},{1} env }} from '@huggingface/transformers';
env.allowRemoteModels = false;
env.localModelPath = 'models/';

const processor = await AutoProcessor.from_pretrained('NAME');
const model = await {0}.from_pretrained('NAME');
const content = [{{ type: '{2}' }}, {{ type: 'text', text: 'What is it?' }}];
const prompt = processor.apply_chat_template([{{ role: 'user', content }}], {{ add_generation_prompt: true }});
const inputs = await processor({3}, {4});
const tokens = await model.generate({{ ...inputs, max_new_tokens: 32 }});
console.log(processor.batch_decode(tokens, {{ skip_special_tokens: true }}));
```
)",
                is_sound ? "AutoModelForAudioTextToText" : "AutoModelForImageTextToText", is_sound ? "" : " RawImage,",
                is_sound ? "audio" : "image", first ? medium : "prompt", first ? "prompt" : medium);
}

}  // namespace

std::string usage(const SourceModel& model, const BundlePlan& plan) {
  std::string before = "Put this folder at `models/NAME`, then in Node or in a page:\n\n```js\n";
  if (plan.graphs.size() > 2) return before + media_example(model);
  Example example = example_of(model);
  return before + format(R"(import {{ pipeline, env }} from '@huggingface/transformers';
env.allowRemoteModels = false;
env.localModelPath = 'models/';

const run = await pipeline('{}', 'NAME');
console.log({});
```
)",
                         example.task, example.call);
}

}  // namespace argosy::engines::transformersjs
