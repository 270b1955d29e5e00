#include "backends/executorch/generation/task.h"

#include <algorithm>
#include <span>

#include "backends/executorch/generation/cross_states.h"
#include "backends/executorch/generation/decoder.h"
#include "backends/executorch/generation/media.h"
#include "base/text.h"
#include "border/border.h"
#include "passes/aten_builder.h"

namespace argosy::executorch {
namespace {

// Memory is reserved for all tokens that caches may ever hold, so a model's own limit may be too much.
constexpr int64_t kUsualSeqLen = 2048;
// Pieces of sound, 30 seconds each for most models, that one call may bring.
constexpr int64_t kMaxChunks = 10;

constexpr std::string_view kForward = "forward";
using MethodKind = MethodPlan::Kind;

struct TaskPart {
  std::string_view component, method;
  MethodKind kind;
  bool is_optional = false;
};

constexpr TaskPart kTextParts[] = {{"decode", kForward, MethodKind::kDecoder}};
constexpr TaskPart kUncachedParts[] = {{"model", kForward, MethodKind::kTokens}};
constexpr TaskPart kSeq2SeqParts[] = {{"encoder", "encoder", MethodKind::kEncoder},
                                      {"decoder", "text_decoder", MethodKind::kDecoder}};
constexpr TaskPart kMediaParts[] = {{"image_encoder", "vision_encoder", MethodKind::kMedia, true},
                                    {"audio_encoder", "audio_encoder", MethodKind::kMedia, true},
                                    {"embedding", "token_embedding", MethodKind::kEmbedding},
                                    {"decode", "text_decoder", MethodKind::kDecoder}};
constexpr TaskPart kModelParts[] = {{"model", kForward, MethodKind::kAsIs}};
constexpr TaskPart kMaskedParts[] = {{"model", kForward, MethodKind::kMaskedTokens}};

struct Task {
  std::string_view name;
  std::span<const TaskPart> parts;
};

constexpr Task kTasks[] = {
    {"automatic-speech-recognition", kSeq2SeqParts},
    {"fill-mask", kMaskedParts},
    {"image-classification", kModelParts},
    {"image-segmentation", kModelParts},
    {"multimodal-text-to-text", kMediaParts},
    {"object-detection", kModelParts},
    {"text-generation", kTextParts},
    {"text2text-generation", kSeq2SeqParts},
};

Result<const Task*> find_task(const std::string& name) {
  auto task = std::ranges::find(kTasks, name, &Task::name);
  if (task != std::end(kTasks)) return task;
  std::vector<std::string> names;
  for (std::string_view each : task_names()) names.emplace_back(each);
  return fail(ErrorCode::kInvalidInput, format("{} is not a task", quoted(name)),
              format("choose one of {}", join(names, ", ")));
}

/// The methods of a task, of a model with these components.
Result<std::vector<MethodPlan>> methods_of(const std::string& name, const std::vector<std::string>& components) {
  ARGOSY_TRY(const Task* task, find_task(name));
  auto has = [&](std::string_view component) { return std::ranges::find(components, component) != components.end(); };
  std::span<const TaskPart> parts = task->parts;
  // Without a cache: runners pass the whole text in every call.
  if (parts.data() == kTextParts && !has("decode") && has("model")) parts = kUncachedParts;
  std::vector<MethodPlan> methods;
  bool has_media = false;
  for (const TaskPart& part : parts) {
    if (!has(part.component)) {
      if (part.is_optional) continue;
      return fail(ErrorCode::kInvalidInput,
                  format("{} needs a component {}, the model has {}", name, part.component,
                         components.empty() ? "none" : join(components, ", ")),
                  "choose the task of this model, or none");
    }
    has_media = has_media || part.kind == MethodKind::kMedia;
    methods.push_back({std::string(part.component), std::string(part.method), part.kind});
  }
  if (parts.data() == kMediaParts && !has_media)
    return fail(ErrorCode::kInvalidInput, "the model has no encoder of pictures or sound",
                "its task is text-generation");
  return methods;
}

void add_constants(const ModelFacts& facts, TaskPlan& plan) {
  const TaskOptions& options = plan.options;
  auto add = [&](std::string name, auto value) { plan.constants.push_back({std::move(name), {value}}); };
  auto add_known = [&](std::string name, std::optional<int64_t> value) {
    if (value) add(std::move(name), *value);
  };
  auto has = [&](MethodKind kind) {
    return std::ranges::find(plan.methods, kind, &MethodPlan::kind) != plan.methods.end();
  };
  auto has_method = [&](std::string_view name) {
    return std::ranges::find(plan.methods, name, &MethodPlan::method) != plan.methods.end();
  };
  add("get_dtype", int64_t{facts.is_half ? 5 : 6});
  add("get_max_batch_size", int64_t{1});
  add_known("get_vocab_size", facts.vocab_size);
  add_known("get_bos_id", facts.bos_id);
  if (!facts.eos_ids.empty()) {
    ConstantMethod ids{"get_eos_ids", {}};
    for (int64_t id : facts.eos_ids) ids.values.emplace_back(id);
    plan.constants.push_back(ids);
    ids.name = "get_eos_id";
    plan.constants.push_back(std::move(ids));
  }
  if (!has(MethodKind::kDecoder) && !has(MethodKind::kTokens)) return;
  bool has_cache = has(MethodKind::kDecoder);
  add("get_max_seq_len", options.max_seq_len);
  add("get_max_context_len", options.max_seq_len);
  add("use_kv_cache", has_cache);
  add("use_sdpa_with_kv_cache", has_cache && options.custom_sdpa);
  add("enable_dynamic_shape", options.dynamic_shapes);
  add_known("get_n_layers", facts.layers);
  add_known("get_n_kv_heads", facts.kv_heads);
  add_known("get_head_dim", facts.head_dim);
  add_known("sliding_window", facts.sliding_window);
  add_known("decoder_start_token_id", facts.decoder_start_id);
  if (has_method("vision_encoder")) add_known("vision_token_id", facts.image_token_id);
  if (has_method("audio_encoder")) add_known("audio_token_id", facts.audio_token_id);
  if (has(MethodKind::kMedia)) add("modality", std::string(has_method("vision_encoder") ? "vision" : "audio"));
}

Status bind_method(Program& program, Component& component, const TaskPlan& plan, MethodKind kind,
                   const MediaTokens& media) {
  const TaskOptions& options = plan.options;
  switch (kind) {
    case MethodKind::kAsIs: fix_batch(component); return {};
    case MethodKind::kDecoder: return bind_decoder(program, component, options, media);
    case MethodKind::kEncoder:
      ARGOSY_TRY_STATUS(bind_plain(program, component, {"input_ids", "input_features", "input_values"}));
      return keep_outputs(component, {"last_hidden_state"});
    case MethodKind::kTokens:
      ARGOSY_TRY_STATUS(bind_plain(program, component, {"input_ids"}));
      return keep_outputs(component, {"logits"});
    case MethodKind::kMaskedTokens:
      ARGOSY_TRY_STATUS(bind_plain(program, component, {"input_ids", "attention_mask"}));
      return keep_outputs(component, {"logits"});
    case MethodKind::kMedia:
      ARGOSY_TRY_STATUS(bind_media(program, component, component.name.starts_with("audio") ? kMaxChunks : 1));
      return media.type ? add_type_column(program, component, *media.type) : Status();
    case MethodKind::kEmbedding:
      ARGOSY_TRY_STATUS(bind_embedding(program, component, options.max_seq_len));
      return media.type ? add_type_column(program, component, 0) : Status();
  }
  return {};
}

}  // namespace

std::vector<std::string_view> task_names() {
  std::vector<std::string_view> names;
  for (const Task& task : kTasks) names.push_back(task.name);
  return names;
}

Status check_task(const TaskOptions& options) {
  if (options.task.empty()) {
    if (options.max_seq_len == 0 && !options.all_logits && options.dynamic_shapes) return {};
    const char* flag = options.max_seq_len != 0 ? "--max-seq-len"
                       : options.all_logits     ? "--all-logits"
                                                : "--disable-dynamic-shapes";
    return fail(ErrorCode::kInvalidInput, format("{} says something of a task, and there is none", flag),
                options.max_seq_len != 0 ? "add --task text-generation or another; --shape bounds dims without one"
                                         : "add --task text-generation or another that generates");
  }
  ARGOSY_TRY(const Task* task, find_task(options.task));
  bool is_of_texts = task->parts.data() != kModelParts;
  if (options.max_seq_len != 0 && !is_of_texts) {
    return fail(ErrorCode::kInvalidInput, format("{} has no texts that --max-seq-len could bound", options.task),
                "leave it out; --shape bounds dims");
  }
  return {};
}

Status check_task(const TaskOptions& options, const std::vector<std::string>& components) {
  if (options.task.empty()) return {};
  ARGOSY_TRY([[maybe_unused]] auto methods, methods_of(options.task, components));
  return {};
}

Result<TaskPlan> plan_task(const Program& program, const TaskOptions& options, const ModelFacts& facts) {
  std::vector<std::string> components;
  for (const Component& component : program.components) components.push_back(component.name);
  TaskPlan plan;
  plan.options = options;
  ARGOSY_TRY(plan.methods, methods_of(options.task, components));
  if (options.max_seq_len < 0) return fail(ErrorCode::kInvalidInput, "--max_seq_len is a number of tokens");
  if (options.max_seq_len == 0)
    plan.options.max_seq_len = std::min(facts.max_positions.value_or(kUsualSeqLen), kUsualSeqLen);
  add_constants(facts, plan);
  int64_t length = facts.max_positions.value_or(plan.options.max_seq_len);
  if (options.max_seq_len != 0) length = std::min(length, options.max_seq_len);
  plan.largest = {{"batch", 1}, {"sequence", std::min(length, plan.options.max_seq_len)}, {"encoder_sequence", length}};
  return plan;
}

Pass bind_task(TaskPlan plan) {
  return {"bind-task", [plan = std::move(plan)](Program& program, PassContext&) -> Result<bool> {
            // Decoders first: they take nodes from encoders, which must still be unchanged.
            auto kinds = static_cast<int>(std::ranges::count(plan.methods, MethodKind::kMedia, &MethodPlan::kind));
            MediaTokens media;
            for (const MethodPlan& method : plan.methods) {
              if (method.kind != MethodKind::kDecoder) continue;
              auto named = [&](const Component& component) { return component.name == method.component; };
              auto component = std::ranges::find_if(program.components, named);
              const Component* encoder = program.find_component("encoder");
              if (encoder != nullptr) {
                ARGOSY_TRY_STATUS(compute_cross_states(program, *encoder, *component));
              }
              ARGOSY_TRY(media, read_media_tokens(program, *component, kinds));
            }
            std::vector<Component> components;
            for (const MethodPlan& method : plan.methods) {
              auto named = [&](const Component& component) { return component.name == method.component; };
              auto component = std::ranges::find_if(program.components, named);
              ARGOSY_TRY_STATUS(or_refused([&] { return bind_method(program, *component, plan, method.kind, media); }));
              component->attributes["component"] = method.component;
            }
            for (const MethodPlan& method : plan.methods) {
              auto named = [&](const Component& component) { return component.name == method.component; };
              Component component = *std::ranges::find_if(program.components, named);
              component.name = method.method;
              components.push_back(std::move(component));
            }
            program.components = std::move(components);
            return true;
          }};
}

}  // namespace argosy::executorch
