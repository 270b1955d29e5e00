#include "engines/pipeline_task.h"

#include <algorithm>

namespace argosy::engines {
namespace {

struct TaskOfClass {
  std::string_view ending;  // of the model's class
  std::string_view task;
};

// The first that fits holds.
constexpr TaskOfClass kTasks[] = {
    {"ForCausalLM", "text-generation"},
    {"LMHeadModel", "text-generation"},
    {"ForMaskedLM", "fill-mask"},
    {"ForSequenceClassification", "text-classification"},
    {"ForTokenClassification", "token-classification"},
    {"ForQuestionAnswering", "question-answering"},
    {"ForImageClassification", "image-classification"},
    {"ForObjectDetection", "object-detection"},
    {"ForSemanticSegmentation", "image-segmentation"},
    {"ForDepthEstimation", "depth-estimation"},
    {"ForCTC", "automatic-speech-recognition"},
    {"ForAudioClassification", "audio-classification"},
    {"ForVideoClassification", "video-classification"},
};

// Of huggingface.js, packages/tasks/src/pipelines.ts, as far as they are tasks of models that take tensors.
constexpr std::string_view kTags[] = {"any-to-any",
                                      "audio-classification",
                                      "audio-text-to-text",
                                      "audio-to-audio",
                                      "automatic-speech-recognition",
                                      "depth-estimation",
                                      "document-question-answering",
                                      "feature-extraction",
                                      "fill-mask",
                                      "image-classification",
                                      "image-feature-extraction",
                                      "image-segmentation",
                                      "image-text-to-text",
                                      "image-to-image",
                                      "image-to-text",
                                      "keypoint-detection",
                                      "mask-generation",
                                      "object-detection",
                                      "question-answering",
                                      "sentence-similarity",
                                      "summarization",
                                      "table-question-answering",
                                      "text-classification",
                                      "text-generation",
                                      "text-ranking",
                                      "text-to-audio",
                                      "text-to-speech",
                                      "text2text-generation",
                                      "time-series-forecasting",
                                      "token-classification",
                                      "translation",
                                      "video-classification",
                                      "video-text-to-text",
                                      "visual-document-retrieval",
                                      "visual-question-answering",
                                      "voice-activity-detection",
                                      "zero-shot-classification",
                                      "zero-shot-image-classification",
                                      "zero-shot-object-detection"};

bool takes_sound(const ComponentInterface& component) {
  return component.input("input_features") != nullptr || component.input("input_values") != nullptr;
}

}  // namespace

std::string_view pipeline_task(const SourceModel& model) {
  if (model.component("image_encoder") != nullptr) return "image-text-to-text";
  if (model.component("audio_encoder") != nullptr) return "audio-text-to-text";
  for (const TaskOfClass& each : kTasks) {
    if (model.model_class.ends_with(each.ending)) return each.task;
  }
  if (const ComponentInterface* encoder = model.component("encoder")) {
    if (takes_sound(*encoder)) return "automatic-speech-recognition";
    return encoder->input("pixel_values") != nullptr ? "image-to-text" : "text2text-generation";
  }
  if (model.components.empty()) return "";
  const ComponentInterface& first = model.components[0];
  if (first.output("logits_per_image") != nullptr) return "zero-shot-image-classification";
  if (!model.model_class.ends_with("Model")) return "";
  return first.input("pixel_values") != nullptr ? "image-feature-extraction" : "feature-extraction";
}

bool is_pipeline_tag(std::string_view name) { return std::ranges::find(kTags, name) != std::end(kTags); }

}  // namespace argosy::engines
