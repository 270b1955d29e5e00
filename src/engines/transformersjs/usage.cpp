#include "engines/transformersjs/usage.h"

#include "base/text.h"

namespace argosy::engines::transformersjs {
namespace {

struct Example {
  std::string_view ending;  // of the model's class
  std::string_view task, call;
};

// The first that fits holds.
constexpr Example kExamples[] = {
    {"ForCausalLM", "text-generation", "await run('Once upon a time', { max_new_tokens: 32 })"},
    {"LMHeadModel", "text-generation", "await run('Once upon a time', { max_new_tokens: 32 })"},
    {"ForMaskedLM", "fill-mask", "await run('The goal of life is [MASK].')"},
    {"ForSequenceClassification", "text-classification", "await run('I like this.')"},
    {"ForTokenClassification", "token-classification", "await run('Paris is in France.')"},
    {"ForQuestionAnswering", "question-answering", "await run('Where is Paris?', 'Paris is in France.')"},
    {"ForImageClassification", "image-classification", "await run('image.png')"},
    {"ForObjectDetection", "object-detection", "await run('image.png')"},
    {"ForSemanticSegmentation", "image-segmentation", "await run('image.png')"},
    {"ForDepthEstimation", "depth-estimation", "await run('image.png')"},
    {"ForCTC", "automatic-speech-recognition", "await run(samples)  // Float32Array at the model's sampling rate"},
    {"ForAudioClassification", "audio-classification", "await run(samples)"},
};

constexpr Example kSpeech = {"", "automatic-speech-recognition", "await run(samples)  // Float32Array, 16 kHz"};
constexpr Example kText = {"", "text2text-generation", "await run('translate English to German: hello')"};
constexpr Example kImage = {"", "image-to-text", "await run('image.png')"};
constexpr Example kZeroShot = {"", "zero-shot-image-classification", "await run('image.png', ['a cat', 'a dog'])"};
constexpr Example kFeatures = {"", "feature-extraction",
                               "await run('A sentence.', { pooling: 'mean', normalize: true })"};

Example example_of(const SourceModel& model) {
  for (const Example& example : kExamples) {
    if (model.model_class.ends_with(example.ending)) return example;
  }
  if (const ComponentInterface* encoder = model.component("encoder")) {
    if (encoder->input("input_features") != nullptr || encoder->input("input_values") != nullptr) return kSpeech;
    return encoder->input("pixel_values") != nullptr ? kImage : kText;
  }
  const ComponentInterface& first = model.components[0];
  return first.output("logits_per_image") != nullptr ? kZeroShot : kFeatures;
}

}  // namespace

std::string usage(const SourceModel& model, const BundlePlan& plan) {
  std::string before = "Put this folder at `models/NAME`, then in Node or in a page:\n\n```js\n";
  if (plan.graphs.size() > 2) {
    return before +
           R"(import { AutoProcessor, AutoModelForImageTextToText, RawImage, env } from '@huggingface/transformers';
env.allowRemoteModels = false;
env.localModelPath = 'models/';

const processor = await AutoProcessor.from_pretrained('NAME');
const model = await AutoModelForImageTextToText.from_pretrained('NAME');
const inputs = await processor(await RawImage.read('image.png'), prompt);
const tokens = await model.generate({ ...inputs, max_new_tokens: 32 });
```
)";
  }
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
