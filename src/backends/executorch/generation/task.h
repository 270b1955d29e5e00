#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ir/program.h"
#include "passes/pass.h"

namespace argosy::executorch {

/// What callers of a task ask for.
struct TaskOptions {
  std::string task;             // "text-generation", as commands call it; a name of task_names()
  int64_t max_seq_len = 0;      // tokens that caches hold, and one call may have; 0: the model's limit, 2048 at most
  bool custom_kv_cache = true;  // caches are written by llama::update_cache; false: by kernels of ExecuTorch alone
  bool custom_sdpa = true;      // attention over caches is llama::custom_sdpa where that computes the same
  bool all_logits = false;      // of text generation: of every token, not of the last one alone
  bool dynamic_shapes = true;   // false: one token a call
};

/// What the configuration says of a model, as far as runners ask for it. Absent: it does not say.
struct ModelFacts {
  std::vector<int64_t> eos_ids;
  std::optional<int64_t> bos_id, vocab_size, max_positions, layers, kv_heads, head_dim, sliding_window,
      decoder_start_id, image_token_id, audio_token_id;
  bool is_half = false;  // computes in float16
};

/// A method without inputs that returns numbers or texts: how programs describe themselves to runners.
struct ConstantMethod {
  std::string name;  // "get_max_seq_len"
  std::vector<std::variant<int64_t, bool, double, std::string>> values;
};

/// Which component of a capture becomes which method.
struct MethodPlan {
  enum class Kind : uint8_t {
    kAsIs,          // inputs and outputs stay
    kTokens,        // input_ids -> logits
    kMaskedTokens,  // input_ids, attention_mask -> logits
    kDecoder,       // caches are states of the program; inputs are tokens (or embeddings) and cache_position
    kEncoder,       // of an encoder and decoder: input -> last_hidden_state
    kMedia,         // pictures or sound -> embeddings of their tokens
    kEmbedding,     // input_ids -> embeddings of a text without media
  };
  std::string component, method;
  Kind kind = Kind::kAsIs;
};

struct TaskPlan {
  TaskOptions options;  // max_seq_len is set
  std::vector<MethodPlan> methods;
  std::vector<ConstantMethod> constants;
  std::map<std::string, int64_t> largest;  // of dims that bind_task() leaves, by their names; for bounds
};

/// The names of all tasks, sorted.
std::vector<std::string_view> task_names();

/// Checks a task's options before there is a program: its name, options that need a task, and options that this task
/// has no use for.
Status check_task(const TaskOptions& options);

/// Whether a model with components of these names has what the task needs.
Status check_task(const TaskOptions& options, const std::vector<std::string>& components);

/// What the program of a task consists of. A model that lacks what a task needs is an error that says what.
Result<TaskPlan> plan_task(const Program& program, const TaskOptions& options, const ModelFacts& facts);

/// "bind-task": makes methods of components, as the plan says. After functionalise and normalise, before bounds.
/// Batches have one row. Components that become no method are removed; the others get the method's name, and the inputs
/// that runners pass, in their order:
///   decoder    input_ids [1, S] (or inputs_embeds [1, S, H]), cache_position [S] -> logits [1, 1 or S, V]
///   seq2seq    decoder_input_ids [1, S], encoder_hidden_states [1, E, H], cache_position [S] -> logits
///   encoder    input_ids [1, E], or features -> last_hidden_state
///   media      pixel_values, or input_features -> embeddings [1, T, H]
///   as it is   what the component is given, in its order, for one row of a batch
///   tokens     input_ids [1, S], with attention_mask [1, S] where the task has it -> logits [1, S, V]
///   embedding  input_ids [1, S] -> inputs_embeds [1, S, H]
/// A cache is a buffer of the program that the graph writes: in place, or by an output of kind kBufferMutation.
Pass bind_task(TaskPlan plan);

}  // namespace argosy::executorch
