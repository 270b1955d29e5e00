#include "engines/genai/vision.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "engines/companions.h"
#include "engines/genai/config.h"
#include "engines/genai/decoder.h"
#include "engines/genai/processor.h"
#include "engines/refused.h"

namespace argosy::engines::genai {
namespace {

/// How a picture becomes inputs.
enum class Pictures : uint8_t {
  kFixedSize,  // by the engine: all pictures have one size, and 256 tokens each
  kPatches,    // by the engine: as many patches as the picture has, of which a grid tells
  kGiven,      // by transformers: the engine has no processor for them
};

/// What types of tokens mean to a model that has them.
enum class TokenTypes : uint8_t { kPictures, kPrefix };

struct Architecture {
  std::string_view model_type, engine_type;
  Pictures pictures;
  TokenTypes token_types = TokenTypes::kPictures;
};

/// The engine's type decides on its processor, on positions and on how it runs the encoder. "gemma3" is the one that
/// does nothing special, so all others run as that.
constexpr std::string_view kPlainType = "gemma3";
constexpr Architecture kArchitectures[] = {
    // clang-format off
    {"gemma3", kPlainType, Pictures::kFixedSize},
    {"paligemma", kPlainType, Pictures::kGiven, TokenTypes::kPrefix},
    {"qwen2_5_vl", "qwen2_5_vl", Pictures::kPatches},
    {"qwen2_vl", "qwen2_5_vl", Pictures::kPatches},
    {"qwen3_5", "qwen3_5", Pictures::kPatches},
    {"qwen3_5_moe", "qwen3_5_moe", Pictures::kPatches},
    {"qwen3_vl", "qwen3_vl", Pictures::kPatches},
    {"qwen3_vl_moe", "qwen3_vl", Pictures::kPatches},
    // clang-format on
};

/// The engine knows no other number for its type "gemma3".
constexpr int64_t kFixedTokens = 256;

/// Inputs of encoders that transformers' processors make from pictures.
constexpr std::string_view kProcessed[] = {"pixel_values", "pixel_attention_mask", "image_sizes", "spatial_shapes"};

constexpr std::string_view kGrid = "image_grid_thw";

/// Features that deeper layers of the decoder want.
constexpr std::string_view kDeepOutput = "image_deepstack_features.", kDeepInput = "deepstack_visual_embeds.";
constexpr std::string_view kDeepMask = "visual_pos_masks";
constexpr int64_t kMaxPositions = int64_t{1} << 40;

constexpr std::string_view kGivenUsage =
    R"(The engine has no processor for this architecture's pictures; transformers prepares them. In this folder, with a file `picture.png`:

```python
import numpy as np
import onnxruntime_genai as og
from PIL import Image
from transformers import AutoProcessor

processor = AutoProcessor.from_pretrained(".")
messages = [{{"role": "user", "content": [{{"type": "image"}}, {{"type": "text", "text": "Describe the picture."}}]}}]
prompt = processor.apply_chat_template(messages, add_generation_prompt=True)
inputs = processor(images=Image.open("picture.png"), text=prompt, return_tensors="np")

tensors = og.NamedTensors()
tensors["input_ids"] = inputs["input_ids"].astype(np.int32)
for name in {}:
    tensors[name] = inputs[name]
tensors["num_image_tokens"] = np.array([(inputs["input_ids"] == {}).sum()])

model = og.Model(".")
params = og.GeneratorParams(model)
params.set_search_options(max_length={})
generator = og.Generator(model, params)
generator.set_inputs(tensors)
while not generator.is_done():
    generator.generate_next_token()
print(processor.decode(generator.get_sequence(0)))
```
)";

/// A plan on its way.
struct Draft {
  Architecture architecture;
  const ComponentInterface *encoder, *embedding, *decode;
  int64_t image_token = 0;
  DecoderPlan decoder;
  GraphPlan vision_graph, embedding_graph;
  Section vision, embedding_section;
  std::optional<TextFile> processor;
  std::vector<std::string> notes;
  std::vector<std::string> deep_outputs, deep_inputs;  // of the encoder and of the decoder
};

Architecture architecture_of(const SourceModel& model) {
  for (const Architecture& each : kArchitectures) {
    if (each.model_type == model.model_type()) return each;
  }
  return {model.model_type(), kPlainType, Pictures::kGiven};
}

std::optional<int64_t> number(JsonView config, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (auto found = config.find(name).as_integer()) return found;
  }
  return std::nullopt;
}

/// The engine hands features to the embedding and embeddings to the decoder, nothing else.
Status check_wiring(const SourceModel& model, const Draft& draft) {
  if (model.component("audio_encoder") != nullptr)
    return refused(kEngine, "it has no way to give sounds to a model of this architecture");
  if (draft.encoder->output("image_features") == nullptr ||
      draft.encoder->outputs.size() != 1 + draft.deep_outputs.size())
    return refused(kEngine, "its encoder of pictures gives more than features of their tokens");
  for (const Port& port : draft.embedding->inputs) {
    bool is_deep = std::ranges::find(draft.deep_outputs, port.name) != draft.deep_outputs.end();
    if (port.name != "input_ids" && port.name != "image_features" && !is_deep)
      return refused(kEngine, format("its embedding would have to be given {}", port.name));
  }
  size_t handed = draft.deep_outputs.empty() ? 1 : 2 + draft.deep_outputs.size();  // embeddings; a mask and the rest
  if (draft.embedding->output("inputs_embeds") == nullptr || draft.embedding->outputs.size() != handed)
    return refused(kEngine, "its embedding hands more to the decoder than embeddings");
  const Port* positions = draft.decode->input("position_ids");
  bool has_three = positions != nullptr && positions->dims.size() == 3;
  if (has_three != (draft.architecture.pictures == Pictures::kPatches))
    return refused(kEngine, "the engine counts positions of this architecture in another way than the model");
  return {};
}

/// Finds features for deeper layers; none unless every component knows them by the usual names.
void find_deep_features(Draft& draft) {
  for (size_t i = 0; i + 1 < draft.encoder->outputs.size(); ++i) {
    std::string output = format("{}{}", kDeepOutput, i), input = format("{}{}", kDeepInput, i);
    if (draft.encoder->output(output) == nullptr || draft.embedding->input(output) == nullptr ||
        draft.embedding->output(input) == nullptr || draft.decode->input(input) == nullptr)
      break;
    draft.deep_outputs.push_back(output);
    draft.deep_inputs.push_back(input);
  }
  if (draft.embedding->output(kDeepMask) != nullptr && draft.decode->input(kDeepMask) != nullptr) return;
  draft.deep_outputs.clear();
  draft.deep_inputs.clear();
}

/// The engine passes on one tensor of features and one of embeddings: the features for deeper layers are put beside
/// them, which makes them wider.
void plan_deep_features(Draft& draft) {
  if (draft.deep_outputs.empty()) return;
  JoinOutputs join{{"image_features"}};
  join.outputs.insert(join.outputs.end(), draft.deep_outputs.begin(), draft.deep_outputs.end());
  draft.vision_graph.edits.emplace_back(std::move(join));
  draft.embedding_graph.edits.emplace_back(
      SpreadFeatures{"image_features", draft.deep_outputs, "inputs_embeds", std::string(kDeepMask), draft.deep_inputs});
  draft.decoder.graph.edits.emplace_back(
      TakeSpreadFeatures{"inputs_embeds", std::string(kDeepMask), draft.deep_inputs});
  for (auto& [key, value] : draft.decoder.section.numbers) {
    if (key == "hidden_size") value *= static_cast<int64_t>(1 + draft.deep_outputs.size());
  }
  draft.notes.push_back(format(
      "\"hidden_size\" of genai_config.json is {} times the model's: features for deeper layers travel beside the "
      "embeddings, which is all that the engine hands on.",
      1 + draft.deep_outputs.size()));
}

/// The engine does not pass types of tokens; they are computed from the ids.
Status plan_text_decoder(const SourceModel& model, Draft& draft) {
  constexpr std::string_view kTypes = "token_type_ids", kIds = "input_ids";
  ComponentInterface decode = *draft.decode;
  bool has_types = decode.input(kTypes) != nullptr;
  std::erase_if(decode.inputs, [&](const Port& port) {
    bool is_deep = std::ranges::find(draft.deep_inputs, port.name) != draft.deep_inputs.end();
    return port.name == kTypes || is_deep || (!draft.deep_inputs.empty() && port.name == kDeepMask);
  });
  ARGOSY_TRY(draft.decoder, plan_decoder(model, decode));
  if (!has_types) return {};
  if (decode.input("attention_mask") == nullptr) return refused(kEngine, "it has types of tokens and no mask");
  ComputeTokenTypes edit;
  edit.input = kTypes;
  edit.mask = "attention_mask";
  edit.tokens = kIds;
  if (draft.architecture.token_types == TokenTypes::kPictures) edit.media_token = draft.image_token;
  draft.decoder.graph.edits.emplace_back(std::move(edit));
  if (decode.input(kIds) == nullptr) draft.decoder.section.inputs.emplace_back(kIds, kIds);
  return {};
}

/// Leaves the preparing to transformers, with a note.
void without_processor(Draft& draft, const std::string& reason) {
  draft.notes.push_back(format("Pictures are not prepared by the engine: {}.", reason));
}

Status plan_fixed_size(const SourceModel& model, Draft& draft) {
  auto tokens = number(model.config->root(), {"mm_tokens_per_image"});
  if (tokens != kFixedTokens) {
    without_processor(draft,
                      format("it wants {} tokens a picture, and the model has {}", kFixedTokens, tokens.value_or(0)));
    return {};
  }
  ARGOSY_TRY(ProcessorSettings settings, ProcessorSettings::read(model, "image_processor"));
  Result<std::string> text = fixed_size_processor(settings);
  if (!text) {
    without_processor(draft, text.error().message);
    return {};
  }
  draft.processor = TextFile{std::string(kImageProcessorFile), *std::move(text)};
  // For several pictures the engine wants a dim of them; without any picture it hands over features without that dim.
  draft.vision_graph.edits.emplace_back(GroupRows{"image_features", kFixedTokens});
  draft.embedding_graph.edits.emplace_back(AcceptGroupedRows{"image_features"});
  return {};
}

Status plan_patches(const SourceModel& model, Draft& draft) {
  JsonView vision = model.config->root().find("vision_config");
  PatchSizes sizes;
  sizes.patch = number(vision, {"patch_size"}).value_or(sizes.patch);
  sizes.merge = number(vision, {"spatial_merge_size"}).value_or(sizes.merge);
  sizes.frames = number(vision, {"temporal_patch_size"}).value_or(sizes.frames);
  if (sizes.patch <= 0 || sizes.merge <= 0 || sizes.frames <= 0)
    return refused(kEngine, "sizes of its patches are not positive");
  ComputePatchPositions edit;
  edit.grid = kGrid;
  edit.merge_size = sizes.merge;
  edit.window = number(vision, {"window_size"}).value_or(0) / sizes.merge / sizes.patch;
  // The table is square, so that its side is a whole number.
  if (auto count = number(vision, {"num_position_embeddings"}))
    edit.side = static_cast<int64_t>(std::sqrt(static_cast<double>(std::clamp<int64_t>(*count, 0, kMaxPositions))));
  for (const Port& port : draft.encoder->inputs) {
    constexpr std::string_view kComputed[] = {"pixel_values",         "position_ids",      "cu_seqlens",
                                              "window_index",         "cu_window_seqlens", "interpolation_indices",
                                              "interpolation_weights"};
    if (std::ranges::find(kComputed, port.name) == std::end(kComputed))
      return refused(kEngine, format("its encoder of pictures would have to be given {}", port.name));
  }
  draft.vision_graph.edits.emplace_back(std::move(edit));
  draft.vision.inputs.emplace_back(kGrid, kGrid);
  draft.vision.numbers = {{"patch_size", sizes.patch}, {"spatial_merge_size", sizes.merge}};
  ARGOSY_TRY(ProcessorSettings settings, ProcessorSettings::read(model, "image_processor"));
  Result<std::string> text = patch_processor(settings, sizes);
  if (text)
    draft.processor = TextFile{std::string(kImageProcessorFile), *std::move(text)};
  else
    without_processor(draft, text.error().message);
  return {};
}

/// All inputs of the encoder must be made by a processor, the engine's or transformers'.
Status check_given(const Draft& draft) {
  for (const Port& port : draft.encoder->inputs) {
    if (std::ranges::find(kProcessed, port.name) == std::end(kProcessed))
      return refused(kEngine, format("its encoder of pictures takes {}, which no processor gives", port.name));
  }
  return {};
}

std::string usage(const Draft& draft, int64_t max_length) {
  bool has_grid = draft.architecture.pictures == Pictures::kPatches;
  if (draft.processor) {
    std::string_view mark = has_grid ? "<|vision_start|><|vision_end|>" : "<start_of_image>";
    return processor_usage("picture.png", format("{}Describe the picture.", mark),
                           R"(processor(prompt, images=og.Images.open("picture.png")))", max_length);
  }
  std::vector<std::string> names;
  for (const Port& port : draft.encoder->inputs) {
    if (!has_grid || port.name == "pixel_values") names.push_back(format("\"{}\"", port.name));
  }
  if (has_grid) names.push_back(format("\"{}\"", kGrid));
  return format(kGivenUsage, format("[{}]", join(names, ", ")), draft.image_token, max_length);
}

void add_tokens(const SourceModel& model, const Draft& draft, Config& config) {
  config.tokens.emplace_back("image_token_id", draft.image_token);
  for (std::string_view key : {"video_token_id", "vision_start_token_id"}) {
    if (auto id = number(model.config->root(), {key})) config.tokens.emplace_back(key, *id);
  }
}

}  // namespace

bool is_vision_language(const SourceModel& model) {
  return model.component("image_encoder") != nullptr && model.component("embedding") != nullptr &&
         model.component("decode") != nullptr;
}

Result<BundlePlan> plan_vision_language(const SourceModel& model) {
  Draft draft{architecture_of(model), model.component("image_encoder"), model.component("embedding"),
              model.component("decode")};
  find_deep_features(draft);
  ARGOSY_TRY_STATUS(check_wiring(model, draft));
  auto token = number(model.config->root(), {"image_token_id", "image_token_index"});
  if (!token) return refused(kEngine, "its configuration does not say which token stands for a picture");
  draft.image_token = *token;
  ARGOSY_TRY_STATUS(plan_text_decoder(model, draft));
  draft.vision_graph = {"vision.onnx", draft.encoder->name, {}, std::string(kDataFile)};
  draft.embedding_graph = {"embedding.onnx", draft.embedding->name, {}, std::string(kDataFile)};
  draft.vision.inputs = {{"pixel_values", "pixel_values"}};
  plan_deep_features(draft);
  if (draft.architecture.pictures == Pictures::kFixedSize) ARGOSY_TRY_STATUS(plan_fixed_size(model, draft));
  if (draft.architecture.pictures == Pictures::kPatches) ARGOSY_TRY_STATUS(plan_patches(model, draft));
  if (draft.architecture.pictures != Pictures::kPatches) ARGOSY_TRY_STATUS(check_given(draft));

  draft.vision.name = "vision";
  draft.vision.file = draft.vision_graph.file;
  // Without a processor no file is named: pictures are passed to the engine already prepared.
  draft.vision.texts = {{"config_filename", std::string(draft.processor ? kImageProcessorFile : "")}};
  draft.vision.outputs = {{"image_features", "image_features"}};
  draft.embedding_section.name = "embedding";
  draft.embedding_section.file = draft.embedding_graph.file;
  draft.embedding_section.inputs = {{"input_ids", "input_ids"}, {"image_features", "image_features"}};
  draft.embedding_section.outputs = {{"inputs_embeds", "inputs_embeds"}};

  BundlePlan plan;
  Config config;
  config.type = draft.architecture.engine_type;
  config.context_length = context_length(model);
  config.vocab_size = draft.decoder.vocab_size;
  add_tokens(model, draft, config);
  plan.usage = usage(draft, std::min<int64_t>(1000, config.context_length));
  config.sections = {std::move(draft.decoder.section), std::move(draft.embedding_section), std::move(draft.vision)};
  plan.graphs = {std::move(draft.decoder.graph), std::move(draft.embedding_graph), std::move(draft.vision_graph)};
  plan.files.push_back({std::string(kConfigFile), config_text(config, model)});
  if (draft.processor) plan.files.push_back(*std::move(draft.processor));
  plan.longest_text = config.context_length;
  plan.copied = companion_files(model);
  plan.notes = std::move(draft.notes);
  return plan;
}

}  // namespace argosy::engines::genai
