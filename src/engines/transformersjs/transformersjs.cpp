#include "engines/transformersjs/transformersjs.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "engines/companions.h"
#include "engines/refused.h"
#include "engines/seq2seq.h"
#include "engines/transformersjs/config.h"
#include "engines/transformersjs/model_types.h"
#include "engines/transformersjs/states.h"
#include "engines/transformersjs/usage.h"

namespace argosy::engines {
namespace {

using namespace transformersjs;

/// Browsers refuse buffers of 2 GiB and more, and take smaller ones more readily.
constexpr uint64_t kMaxDataBytes = uint64_t{1} << 30;
constexpr std::string_view kEngine = "transformers.js";
/// The engine's name for the batch dim in the shapes of states; it knows no other.
constexpr std::string_view kBatch = "batch_size";

struct Precision {
  std::string dtype, suffix;  // as the engine calls it, and as files are named after it
};

struct Planned {
  BundlePlan bundle;
  ConfigPlan config;
  Precision precision;
};

/// Of float32 and of float16, by how weights are stored.
struct NamedScheme {
  std::string_view scheme;
  Precision single, half;
};

Result<Precision> precision_of(const SourceModel& model) {
  // It has no name of its own for mixed ones; inputs and outputs are read from the files.
  const Precision plain = model.is_mixed_half ? Precision{"fp16", "_fp16"} : Precision{"fp32", ""};
  const NamedScheme schemes[] = {{"", plain, {"fp16", "_fp16"}},
                                 {"int4", {"q4", "_q4"}, {"q4f16", "_q4f16"}},
                                 {"int8", {"q8", "_quantized"}, {}},
                                 {"dynamic-int8", {"int8", "_int8"}, {}},
                                 {"dynamic-uint8", {"uint8", "_uint8"}, {}},
                                 {"nf4", {"bnb4", "_bnb4"}, {}}};
  const auto* found = std::ranges::find(schemes, model.scheme, &NamedScheme::scheme);
  ARGOSY_CHECK(found != std::end(schemes), "weights are stored in a way that has no name: " + model.scheme);
  for (const ComponentInterface& component : model.components) {
    for (const Port& port : component.outputs) {
      if (port.dtype == "f32") return found->single;
      if (port.dtype == "f16" && found->half.dtype.empty()) {
        return fail(ErrorCode::kUnsupportedFeature, format("{} has no name for {} with float16", kEngine, model.scheme),
                    "use --quantize int4, or --dtype fp32");
      }
      if (port.dtype == "f16") return found->half;
      if (port.dtype == "bf16")
        return fail(ErrorCode::kUnsupportedFeature, format("{} has no bfloat16", kEngine),
                    "add --dtype fp32 or --dtype fp16");
    }
  }
  return plain;
}

/// Inputs that the engine's processors and tokenizers make, for a graph that is run once.
constexpr std::string_view kEncoderInputs[] = {
    "attention_mask", "bbox",         "input_features", "input_ids",      "input_values",
    "pixel_mask",     "pixel_values", "position_ids",   "token_type_ids",
};
constexpr std::string_view kImageInputs[] = {"pixel_attention_mask", "pixel_values", "spatial_shapes"};
constexpr std::string_view kAudioInputs[] = {"attention_mask", "audio_values", "input_features"};
constexpr std::string_view kDecoderInputs[] = {"attention_mask", "input_ids", "inputs_embeds", "position_ids"};

template <size_t N>
const Port* unknown_input(const ComponentInterface& component, const std::string_view (&known)[N]) {
  for (const Port& port : component.inputs) {
    bool is_state = std::ranges::any_of(component.states, [&](const State& state) { return state.input == port.name; });
    if (!is_state && std::ranges::find(known, port.name) == std::end(known)) return &port;
  }
  return nullptr;
}

class Planner {
 public:
  explicit Planner(const SourceModel& model) : model_(model) {}

  Result<Planned> run() {
    ARGOSY_TRY(planned_.precision, precision_of(model_));
    if (model_.component("encoder") != nullptr && model_.component("decoder") != nullptr) {
      ARGOSY_TRY_STATUS(add_seq2seq());
    } else if (model_.component("embedding") != nullptr && model_.component("decode") != nullptr) {
      ARGOSY_TRY_STATUS(add_multimodal());
    } else if (const ComponentInterface* decode = model_.component("decode")) {
      ARGOSY_TRY_STATUS(add_decoder(*decode, "model", ""));
    } else if (model_.components.size() == 1) {
      ARGOSY_TRY_STATUS(add_single(model_.components[0]));
    } else {
      std::vector<std::string> names;
      for (const ComponentInterface& component : model_.components) names.push_back(component.name);
      return refused(kEngine, format("it has no graphs for {}", join(names, ", ")));
    }
    planned_.bundle.copied = companion_files(model_);
    add_processor();
    add_labels(model_, planned_.config);
    std::vector<std::string>& notes = planned_.bundle.notes;
    notes.insert(notes.end(), planned_.config.notes.begin(), planned_.config.notes.end());
    planned_.bundle.usage = usage(model_, planned_.bundle);
    return std::move(planned_);
  }

 private:
  GraphPlan& add_graph(const ComponentInterface& component, std::string_view name) {
    std::string file = format("{}{}.onnx", name, planned_.precision.suffix);
    GraphPlan graph{"onnx/" + file, component.name, {}, file + "_data"};
    graph.max_data_bytes = kMaxDataBytes;
    return planned_.bundle.graphs.emplace_back(std::move(graph));
  }

  Status add_single(const ComponentInterface& component) {
    GraphPlan& graph = add_graph(component, "model");
    if (component.input("attention_mask") != nullptr && component.input("input_ids") != nullptr &&
        ignores_attention_mask())
      graph.edits.emplace_back(FillInput{"attention_mask", "input_ids"});
    if (const Port* port = unknown_input(component, kEncoderInputs)) {
      planned_.bundle.notes.push_back(
          format("the graph has to be given {}, which {} does not make", port->name, kEngine));
    }
    return {};
  }

  /// Whether a model was trained on padded texts without attention masks; the engine's tokenizers always make masks. A
  /// tokenizer's configuration shows it by model_input_names. SigLIP's, as transformers writes it, does not, nor does
  /// any field of its model's configuration: so the type's name decides.
  bool ignores_attention_mask() const {
    if (model_.model_type() == "siglip") return true;
    JsonView names = model_.tokenizer_config ? model_.tokenizer_config->root().find("model_input_names") : JsonView();
    if (names.size() == 0) return false;
    for (JsonView name : names.items()) {
      if (name.as_string() == "attention_mask") return false;
    }
    return true;
  }

  Status add_decoder(const ComponentInterface& decode, std::string_view name, const std::string& part) {
    if (const Port* port = unknown_input(decode, kDecoderInputs))
      return refused(kEngine,
                     format("its decoder would have to be given {}, which the engine does not have", port->name));
    ARGOSY_TRY(StatePlan states, plan_states(model_, decode, part));
    GraphPlan& graph = add_graph(decode, name);
    graph.edits = std::move(states.edits);
    graph.edits.emplace_back(RenameDim{"batch", std::string(kBatch)});
    if (states.key_value_layers != 0) describe_decoder(model_, part, states.key_value_layers, planned_.config);
    return {};
  }

  Status add_seq2seq() {
    ARGOSY_TRY(Seq2SeqPlan plan, plan_seq2seq(model_, kEngine));
    if (const Port* port = unknown_input(*model_.component("encoder"), kEncoderInputs))
      return refused(kEngine,
                     format("its encoder would have to be given {}, which the engine does not make", port->name));
    add_graph(*model_.component("encoder"), "encoder_model").edits = std::move(plan.encoder);
    GraphPlan& decoder = add_graph(*model_.component("decoder"), "decoder_model_merged");
    decoder.edits = std::move(plan.decoder);
    decoder.edits.emplace_back(RenameDim{"batch", std::string(kBatch)});
    describe_seq2seq(model_, plan.layers, planned_.config);
    return {};
  }

  Status add_multimodal() {
    const ComponentInterface &embedding = *model_.component("embedding"), &decode = *model_.component("decode");
    std::string_view type = model_.model_type();
    bool takes_images = is_image_text_type(type);
    if (!takes_images && !is_audio_text_type(type))
      return refused(kEngine, format("it does not know how {} puts images or sounds into a text", quoted(type)));
    if (const Port* positions = decode.input("position_ids"); positions != nullptr && positions->dims.size() != 2) {
      if (!has_image_positions(type)) return refused(kEngine, "its positions have several parts");
    }
    ARGOSY_TRY_STATUS(add_decoder(decode, "decoder_model_merged", "text_config"));
    DropFeatures features;
    for (const Port& port : embedding.inputs) {
      if (port.name != "input_ids") features.inputs.push_back(port.name);
    }
    GraphPlan& embed = add_graph(embedding, "embed_tokens");
    if (!features.inputs.empty()) embed.edits.emplace_back(std::move(features));
    const ComponentInterface* images = model_.component("image_encoder");
    const ComponentInterface* sounds = model_.component("audio_encoder");
    if (takes_images && images == nullptr) return refused(kEngine, "it has no encoder of images");
    if (!takes_images && sounds == nullptr) return refused(kEngine, "it has no encoder of sounds");
    if (takes_images) return add_encoder(*images, "vision_encoder", "image_features", kImageInputs);
    ARGOSY_TRY_STATUS(add_encoder(*sounds, "audio_encoder", "audio_features", kAudioInputs));
    // The engine passes features under another name than the model's to two types.
    if (sounds->input("input_features") != nullptr && type != "granite_speech")
      planned_.bundle.graphs.back().edits.emplace_back(RenameInput{"input_features", "audio_values"});
    return {};
  }

  template <size_t N>
  Status add_encoder(const ComponentInterface& encoder, std::string_view name, std::string_view output,
                     const std::string_view (&inputs)[N]) {
    if (const Port* port = unknown_input(encoder, inputs))
      return refused(kEngine, format("its {} would have to be given {}, which the engine does not make", encoder.name,
                                     port->name));
    if (encoder.output(output) == nullptr) return refused(kEngine, format("its {} gives no {}", encoder.name, output));
    GraphPlan& graph = add_graph(encoder, name);
    // The engine's processors make masks of pixels as booleans.
    const Port* mask = encoder.input("pixel_attention_mask");
    if (mask != nullptr && mask->dtype != "bool") graph.edits.emplace_back(CastInput{mask->name, "bool"});
    for (const Port& port : encoder.outputs) {
      if (port.name != output) graph.edits.emplace_back(DropOutput{port.name});
    }
    return {};
  }

  /// The engine reads preprocessor_config.json; newer models have its content in processor_config.json.
  void add_processor() {
    if (model_.has_file("preprocessor_config.json") || !model_.processor_config) return;
    JsonView root = model_.processor_config->root();
    for (std::string_view key : {"image_processor", "feature_extractor"}) {
      JsonView part = root.find(key);
      if (!part.is_object()) continue;
      std::vector<JsonChange> changes;
      if (auto name = root.find("processor_class").as_string())
        changes.push_back({{"processor_class"}, std::string(*name)});
      planned_.bundle.files.push_back({"preprocessor_config.json", rewritten(part, changes)});
      return;
    }
  }

  const SourceModel& model_;
  Planned planned_;
};

}  // namespace

Result<BundlePlan> plan_transformersjs(const SourceModel& model) {
  ARGOSY_TRY(Planned planned, Planner(model).run());
  return std::move(planned.bundle);
}

Status finish_transformersjs(const SourceModel& model, const std::vector<WrittenGraph>& graphs, BundlePlan& plan) {
  ARGOSY_TRY(Planned planned, Planner(model).run());
  ARGOSY_TRY(std::string text, config_text(model, planned.config, graphs, planned.precision.dtype));
  plan.files.push_back({"config.json", std::move(text)});
  return {};
}

}  // namespace argosy::engines
