#include "engines/transformersjs/config.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "engines/transformersjs/model_types.h"

namespace argosy::engines::transformersjs {
namespace {

constexpr std::string_view kSection = "transformers.js_config";
constexpr size_t kMaxDataFiles = 100;  // of a graph, the engine's limit

/// Changes one part of the configuration, where needed.
class Part {
 public:
  Part(const SourceModel& model, std::string name, ConfigPlan& plan) : name_(std::move(name)), plan_(plan) {
    view_ = model.config->root();
    if (!name_.empty()) view_ = view_.find(name_);
  }

  std::string_view model_type() const { return view_.find("model_type").as_string().value_or(""); }
  JsonView find(std::string_view key) const { return view_.find(key); }

  void set(std::string_view key, JsonChange::Value value) {
    std::vector<std::string> path;
    if (!name_.empty()) path.push_back(name_);
    path.emplace_back(key);
    plan_.changes.push_back({std::move(path), std::move(value)});
  }
  void set_number(std::string_view key, int64_t number) {
    if (view_.find(key).as_integer() != number) set(key, number);
  }
  void call(std::string_view type) {
    std::string before(model_type());
    set("model_type", std::string(type));
    plan_.changes.push_back({{std::string(kSection), "argosy_model_type"}, before});
    plan_.notes.push_back(
        format("config.json calls the model type {} {}, since transformers.js does not know it and only names its "
               "cache by it; transformers needs the original config.json",
               quoted(before), quoted(type)));
  }

 private:
  std::string name_;
  ConfigPlan& plan_;
  JsonView view_;
};

}  // namespace

void describe_decoder(const SourceModel& model, const std::string& part, int64_t layers, ConfigPlan& plan) {
  Part config(model, part, plan);
  if (hybrid_type(config.model_type()) != nullptr) return;  // it reads the types of layers
  auto key = decoder_layers_key(config.model_type());
  if (!key) {
    config.call(kAnyDecoder);
    key = decoder_layers_key(kAnyDecoder);
  }
  config.set_number(*key, layers);
  // The engine takes this for keys and values in one tensor.
  if (config.find("multi_query").as_bool().value_or(false)) config.set("multi_query", false);
}

void describe_seq2seq(const SourceModel& model, int64_t layers, ConfigPlan& plan) {
  Part config(model, "", plan);
  if (config.find("is_encoder_decoder").as_bool() != true) config.set("is_encoder_decoder", true);
  if (config.model_type() == "vision-encoder-decoder") {
    Part decoder(model, "decoder", plan);
    auto key = vision_decoder_layers_key(decoder.model_type());
    if (!key) {
      decoder.call(kAnyVisionDecoder);
      key = vision_decoder_layers_key(kAnyVisionDecoder);
    }
    decoder.set_number(*key, layers);
    return;
  }
  auto key = seq2seq_layers_key(config.model_type());
  if (!key) {
    config.call(kAnySeq2Seq);
    key = seq2seq_layers_key(kAnySeq2Seq);
  }
  config.set_number(*key, layers);
}

void add_labels(const SourceModel& model, ConfigPlan& plan) {
  if (model.config->root().find("id2label").is_object()) return;
  constexpr std::string_view kClassifiers[] = {
      "ForAudioClassification",  "ForImageClassification",    "ForObjectDetection",
      "ForSemanticSegmentation", "ForSequenceClassification", "ForTokenClassification",
  };
  if (std::ranges::none_of(kClassifiers, [&](std::string_view end) { return model.model_class.ends_with(end); }))
    return;
  // What transformers leaves out of config.json: its default.
  for (int label : {0, 1}) plan.changes.push_back({{"id2label", format("{}", label)}, format("LABEL_{}", label)});
}

Result<std::string> config_text(const SourceModel& model, const ConfigPlan& plan,
                                const std::vector<WrittenGraph>& graphs, const std::string& dtype) {
  std::vector<JsonChange> changes = plan.changes;
  auto add = [&](std::vector<std::string> path, JsonChange::Value value) {
    path.insert(path.begin(), std::string(kSection));
    changes.push_back({std::move(path), std::move(value)});
  };
  add({"dtype"}, dtype);
  if (model.device != nullptr && !model.device->provider.empty()) add({"device"}, std::string(model.device->provider));
  for (const WrittenGraph& graph : graphs) {
    if (graph.data_files > kMaxDataFiles) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("transformers.js takes at most {} data files of a graph, and {} has {}", kMaxDataFiles,
                         graph.file, graph.data_files));
    }
    if (graph.data_files == 0) continue;
    std::string file = std::filesystem::path(graph.file).filename().string();
    add({"use_external_data_format", file}, static_cast<int64_t>(graph.data_files));
  }
  return rewritten(model.config->root(), changes);
}

}  // namespace argosy::engines::transformersjs
