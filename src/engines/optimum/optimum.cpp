#include "engines/optimum/optimum.h"

#include <algorithm>

#include "base/text.h"
#include "engines/companions.h"
#include "engines/refused.h"
#include "engines/seq2seq.h"
#include "engines/tokenizer_config.h"

namespace argosy::engines {
namespace {

constexpr std::string_view kEngine = "Optimum";
constexpr std::string_view kDecoderInputs[] = {"attention_mask", "input_ids", "position_ids"};

Status check_dtype(const SourceModel& model) {
  for (const ComponentInterface& component : model.components) {
    for (const Port& port : component.outputs) {
      if (port.dtype == "bf16")
        return fail(ErrorCode::kUnsupportedFeature, format("{} has no bfloat16", kEngine),
                    "add --dtype fp32 or --dtype fp16");
    }
  }
  return {};
}

/// What makes inputs of texts, pictures or sounds: a class of transformers, and a call of it.
struct Preparer {
  std::string_view class_name, call, file;
};
constexpr Preparer kTexts = {"AutoTokenizer", R"(prepare("Once upon a time", return_tensors="pt"))", ""};
constexpr Preparer kPictures = {"AutoImageProcessor", R"(prepare(Image.open("picture.png"), return_tensors="pt"))",
                                "picture.png"};
constexpr Preparer kBoth = {
    "AutoProcessor",
    R"(prepare(text=["a cat", "a dog"], images=Image.open("picture.png"), return_tensors="pt", padding=True))",
    "picture.png"};
// A second of silence.
constexpr Preparer kSounds = {"AutoFeatureExtractor",
                              R"(prepare([0.0] * 16000, sampling_rate=16000, return_tensors="pt"))", ""};

const Preparer& preparer_of(const ComponentInterface& first) {
  bool takes_texts = first.input("input_ids") != nullptr;
  if (first.input("pixel_values") != nullptr) return takes_texts ? kBoth : kPictures;
  return takes_texts ? kTexts : kSounds;
}

std::string usage(std::string_view class_name, const Preparer& preparer, bool generates) {
  bool makes_text = generates && preparer.class_name == kTexts.class_name;
  std::string_view last = makes_text  ? "print(prepare.batch_decode(model.generate(**inputs, max_new_tokens=32)))"
                          : generates ? "print(model.generate(**inputs, max_new_tokens=32))"
                                      : "print({name: value.shape for name, value in model(**inputs).items()})";
  return format(R"(In this folder{}:

```python
from optimum.onnxruntime import {}
{}from transformers import {}

model = {}.from_pretrained(".")
prepare = {}.from_pretrained(".")
inputs = {}
{}
```
)",
                preparer.file.empty() ? "" : format(", with a file `{}`", preparer.file), class_name,
                preparer.file.empty() ? "" : "from PIL import Image\n", preparer.class_name, class_name,
                preparer.class_name, preparer.call, last);
}

/// The class for a model that is run once, by the name of its PyTorch class.
std::string_view single_class(std::string_view model_class) {
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"ForMaskedLM", "ORTModelForMaskedLM"},
      {"ForSequenceClassification", "ORTModelForSequenceClassification"},
      {"ForTokenClassification", "ORTModelForTokenClassification"},
      {"ForQuestionAnswering", "ORTModelForQuestionAnswering"},
      {"ForMultipleChoice", "ORTModelForMultipleChoice"},
      {"ForImageClassification", "ORTModelForImageClassification"},
      {"ForSemanticSegmentation", "ORTModelForSemanticSegmentation"},
      {"ForCTC", "ORTModelForCTC"},
      {"ForAudioClassification", "ORTModelForAudioClassification"},
      {"ForXVector", "ORTModelForAudioXVector"},
      {"ForAudioFrameClassification", "ORTModelForAudioFrameClassification"},
      {"CLIPModel", "ORTModelForZeroShotImageClassification"},
  };
  for (auto [ending, name] : kClasses) {
    if (model_class.ends_with(ending)) return name;
  }
  return "ORTModelForFeatureExtraction";
}

Status add_decoder(const ComponentInterface& decode, BundlePlan& plan) {
  GraphPlan graph{"model.onnx", decode.name, {}, "model.onnx_data"};
  for (const Port& port : decode.inputs) {
    bool is_state = std::ranges::any_of(decode.states, [&](const State& state) { return state.input == port.name; });
    if (!is_state && std::ranges::find(kDecoderInputs, port.name) == std::end(kDecoderInputs))
      return refused(kEngine,
                     format("its decoder would have to be given {}, which the engine does not have", port.name));
    if (!is_state) continue;
    if (!port.name.ends_with(".key") && !port.name.ends_with(".value"))
      return refused(kEngine, format("it carries keys and values from step to step, and this one has {}", port.name));
    // The engine computes the sizes of the first, empty states from the configuration, and rightly for some types only.
    graph.edits.emplace_back(AcceptEmptyState{port.name});
  }
  if (decode.states.empty()) return refused(kEngine, "its decoder has no states");
  plan.graphs.push_back(std::move(graph));
  plan.usage = usage("ORTModelForCausalLM", kTexts, true);
  return {};
}

Status add_seq2seq(const SourceModel& model, BundlePlan& plan) {
  ARGOSY_TRY(Seq2SeqPlan seq2seq, plan_seq2seq(model, kEngine));
  // Named after the graph that is downloaded first: so that comes with the weights of both.
  std::string data = "encoder_model.onnx_data";
  plan.graphs.push_back({"encoder_model.onnx", "encoder", std::move(seq2seq.encoder), data});
  GraphPlan decoder{"decoder_model_merged.onnx", "decoder", std::move(seq2seq.decoder), data};
  for (const std::string& state : seq2seq.states) decoder.edits.emplace_back(AcceptEmptyState{state});
  decoder.edits.emplace_back(OrderInputs{std::move(seq2seq.states)});
  plan.graphs.push_back(std::move(decoder));
  const ComponentInterface& encoder = *model.component("encoder");
  const Preparer& preparer = preparer_of(encoder);
  std::string_view class_name = &preparer == &kTexts      ? "ORTModelForSeq2SeqLM"
                                : &preparer == &kPictures ? "ORTModelForVision2Seq"
                                                          : "ORTModelForSpeechSeq2Seq";
  plan.usage = usage(class_name, preparer, true);
  return {};
}

}  // namespace

Result<BundlePlan> plan_optimum(const SourceModel& model) {
  ARGOSY_TRY_STATUS(check_dtype(model));
  BundlePlan plan;
  const ComponentInterface* decode = model.component("decode");
  if (model.component("encoder") != nullptr && model.component("decoder") != nullptr) {
    ARGOSY_TRY_STATUS(add_seq2seq(model, plan));
  } else if (decode != nullptr && model.components.size() == 1) {
    ARGOSY_TRY_STATUS(add_decoder(*decode, plan));
  } else if (model.components.size() == 1) {
    plan.graphs.push_back({"model.onnx", model.components[0].name, {}, "model.onnx_data"});
    plan.usage = usage(single_class(model.model_class), preparer_of(model.components[0]), false);
  } else {
    std::vector<std::string> names;
    for (const ComponentInterface& component : model.components) names.push_back(component.name);
    return refused(kEngine, format("it has no class for {}", join(names, ", ")));
  }
  plan.copied = companion_files(model);
  add_tokenizer_config(model, plan);
  return plan;
}

}  // namespace argosy::engines
