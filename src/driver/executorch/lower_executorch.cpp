#include "driver/executorch/lower_executorch.h"

#include <algorithm>
#include <map>
#include <set>

#include "backends/executorch/constant_method.h"
#include "backends/executorch/lowering.h"
#include "backends/executorch/quantize.h"
#include "backends/executorch/writer.h"
#include "base/text.h"
#include "driver/dim_limits.h"
#include "driver/export_hooks.h"
#include "driver/user_rules.h"
#include "io/output.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

using executorch::Document;

constexpr std::string_view kSingleMethod = "forward";
// Usual bounds of unbounded dims. Memory is reserved for them.
constexpr int64_t kUsualBatch = 4, kUsualSize = 256, kMostSize = int64_t{1} << 20;

/// A dim that has one size, and one that has many.
Status read_shape(const Program& program, std::string_view shape, executorch::LoweringOptions& options) {
  ARGOSY_TRY(auto limits, read_dim_limits(shape));
  ARGOSY_TRY_STATUS(check_dim_limits(program, limits));
  for (const auto& [name, limit] : limits) {
    if (!limit.max) {
      return fail(ErrorCode::kInvalidInput, format("--shape gives {} no largest size", name),
                  "memory is reserved for it: write sequence=1..2048");
    }
    (limit.is_fixed() ? options.fixed : options.largest)[name] = *limit.max;
  }
  return {};
}

/// Sizes of the trace, by symbol: "s70=16 s72=2".
std::map<std::string, int64_t> traced_sizes(const Component& component) {
  std::map<std::string, int64_t> sizes;
  auto hints = component.attributes.find(std::string(kPt2Hints));
  std::string_view text = hints == component.attributes.end() ? std::string_view() : hints->second;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    if (auto size = read_size(item.substr(equals + 1))) sizes[std::string(item.substr(0, equals))] = *size;
  }
  return sizes;
}

bool mentions(SymExpr expression, SymExpr symbol) {
  if (expression == symbol) return true;
  return std::ranges::any_of(expression.operands(), [&](SymExpr operand) { return mentions(operand, symbol); });
}

/// Whether a guard of the trace bounds a dim. Users did not ask for such a bound: less memory is reserved.
bool is_guarded(const Component& component, SymExpr symbol) {
  return std::ranges::any_of(component.guards, [&](const Guard& guard) {
    return guard.condition.is_valid() && mentions(guard.condition, symbol);
  });
}

/// Bounds for unbounded dims of inputs, by name. Twice the size in the trace, if that is more than usual: a sound has
/// many more samples than a text has tokens.
std::map<std::string, int64_t> usual_bounds(const Program& program, const executorch::LoweringOptions& asked) {
  std::map<std::string, int64_t> usual;
  for (const Component& component : program.components) {
    const std::map<std::string, int64_t> traced = traced_sizes(component);
    for (SymExpr symbol : component.symbols->symbols()) {
      auto name = component.dim_names.find(std::string(symbol.symbol_name()));
      if (name == component.dim_names.end()) continue;
      if (asked.largest.contains(name->second) || asked.fixed.contains(name->second)) continue;
      SymRange range = component.symbols->range(symbol);
      bool is_bounded = range.max != SymRange::kNoMax && range.max < int64_t{1} << 31;
      if (is_bounded && !is_guarded(component, symbol)) continue;
      int64_t size = name->second.ends_with("batch") ? kUsualBatch : kUsualSize;
      auto hint = traced.find(std::string(symbol.symbol_name()));
      if (hint != traced.end()) size = std::max(size, std::min(2 * hint->second, kMostSize));
      if (is_bounded) size = std::min(size, range.max);
      usual[name->second] = std::max({usual[name->second], size, range.min});
    }
  }
  return usual;
}

/// Refuses sizes that the user asks for and that the graphs are not correct for.
Status check_asked(const Program& program, const executorch::LoweringOptions& asked) {
  for (const Component& component : program.components) {
    for (SymExpr symbol : component.symbols->symbols()) {
      auto name = component.dim_names.find(std::string(symbol.symbol_name()));
      if (name == component.dim_names.end() || !is_guarded(component, symbol)) continue;
      int64_t most = component.symbols->range(symbol).max;
      for (const auto* sizes : {&asked.largest, &asked.fixed}) {
        auto size = sizes->find(name->second);
        if (size == sizes->end() || size->second <= most) continue;
        return fail(
            ErrorCode::kInvalidInput,
            format("{} is to be up to {}, but {} is right up to {} only: beyond, the model's code takes another "
                   "way",
                   name->second, size->second, component.name, most),
            format("write --shape {}=1..{}, or a range that begins above {}", name->second, most, most));
      }
    }
  }
  return {};
}

/// The options with all that was left open filled in.
Result<executorch::LoweringOptions> complete_options(const Program& program, const ExecutorchOptions& options,
                                                     const executorch::ModelFacts& facts, Diagnostics& diagnostics) {
  executorch::LoweringOptions lowering = options.lowering;
  ARGOSY_TRY_STATUS(read_shape(program, options.shape, lowering));
  ARGOSY_TRY_STATUS(check_asked(program, lowering));
  // Dims that a task binds itself: rows of a batch, and tokens.
  std::set<std::string_view> bound;
  if (!options.task.task.empty()) {
    ARGOSY_TRY(lowering.task, executorch::plan_task(program, options.task, facts));
    lowering.largest.insert(lowering.task->largest.begin(), lowering.task->largest.end());
    bound = {"batch", "sequence", "past_sequence", "encoder_sequence"};
  }
  std::vector<std::string> texts;
  for (const auto& [name, size] : usual_bounds(program, lowering)) {
    if (!bound.contains(name)) texts.push_back(format("{}=1..{}", name, size));
    if (!bound.contains(name)) lowering.largest.emplace(name, size);
  }
  if (!texts.empty())
    diagnostics.notes.push_back(
        format("no limits given; using --shape {} (larger inputs fail at run time)", join(texts, ",")));
  return lowering;
}

}  // namespace

Result<Pipeline> executorch_passes(const Program& program, const ExecutorchOptions& options,
                                   const executorch::ModelFacts& facts, Diagnostics& diagnostics) {
  ARGOSY_TRY(executorch::LoweringOptions lowering, complete_options(program, options, facts, diagnostics));
  return executorch::executorch_pipeline(lowering);
}

Result<Document> lower_to_executorch(Program program, const ExecutorchOptions& options,
                                     const executorch::ModelFacts& facts, Diagnostics& diagnostics) {
  ARGOSY_TRY(executorch::LoweringOptions lowering, complete_options(program, options, facts, diagnostics));
  executorch::note_ranges(program, lowering.ranges);
  const Pipeline pipeline = after_rules(options.rules, executorch::executorch_pipeline(lowering));
  ARGOSY_TRY_STATUS(run_export_passes(pipeline, program, options.hooks, diagnostics));
  Document document;
  executorch::DataTable data;
  Status status;  // the first error; those of later components are in the diagnostics
  for (const Component& component : program.components) {
    auto method = executorch::build_method(program, component, data, diagnostics);
    if (method) {
      document.methods.push_back(*std::move(method));
    } else if (status) {
      status = fail(std::move(method.error()));
    }
  }
  if (!status) return fail(std::move(status.error()));
  if (!lowering.task && document.methods.size() == 1) document.methods[0].name = kSingleMethod;
  if (lowering.task) {
    for (const executorch::ConstantMethod& constant : lowering.task->constants)
      document.methods.push_back(executorch::constant_method(constant));
  }
  document.data = data.take();
  document.quantized = quantized_weights(program);
  if (options.hooks != nullptr && options.hooks->on_executorch)
    ARGOSY_TRY_STATUS(options.hooks->on_executorch(document));
  return document;
}

Status write_executorch_program(const std::filesystem::path& path, Program program, const ExecutorchOptions& options,
                                const TensorWriteOptions& stream, Diagnostics& diagnostics) {
  ARGOSY_TRY(Document document, lower_to_executorch(std::move(program), options, {}, diagnostics));
  ARGOSY_TRY(executorch::Layout layout, executorch::Layout::build(std::move(document), executorch::DataPlace::kInside));
  ARGOSY_TRY(OutputFiles files, OutputFiles::create(path, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(layout.write(files.path() / path.filename(), {}, stream));
  return files.commit();
}

executorch::ModelFacts model_facts(const engines::SourceModel& model) {
  executorch::ModelFacts facts;
  facts.eos_ids = model.token_ids("eos_token_id");
  auto first = [&](std::string_view key) -> std::optional<int64_t> {
    std::vector<int64_t> ids = model.token_ids(key);
    return ids.empty() ? std::nullopt : std::optional(ids[0]);
  };
  facts.bos_id = first("bos_token_id");
  facts.decoder_start_id = first("decoder_start_token_id");
  facts.vocab_size = model.text_number({"vocab_size"});
  facts.max_positions = model.within_limits(model.text_number(
      {"max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len", "seq_length"}));
  facts.layers = model.text_number({"num_hidden_layers", "n_layer", "num_layers", "decoder_layers"});
  facts.kv_heads =
      model.text_number({"num_key_value_heads", "num_attention_heads", "n_head", "decoder_attention_heads"});
  facts.head_dim = model.text_number({"head_dim"});
  facts.sliding_window = model.text_number({"sliding_window"});
  facts.image_token_id = first("image_token_id");
  if (!facts.image_token_id) facts.image_token_id = first("image_token_index");
  facts.audio_token_id = first("audio_token_id");
  if (!facts.audio_token_id) facts.audio_token_id = first("audio_token_index");
  return facts;
}

}  // namespace argosy
