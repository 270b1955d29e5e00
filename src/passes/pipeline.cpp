#include "passes/pipeline.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "ir/verify.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fix_dims.h"
#include "passes/functionalise.h"
#include "passes/merge_equal_nodes.h"
#include "passes/normalise.h"
#include "passes/structures/recognise.h"
#include "passes/structures/structures.h"
#include "passes/verify_program.h"

namespace argosy {
namespace {

// In alphabetical order.
constexpr NamedPass kPasses[] = {
    {"compact-ids", "number nodes and values densely, without gaps of erased ones", compact_ids},
    {"decompose-attention", "write attention, one op of a capture, in plain PyTorch", decompose_attention},
    {"decompose-complex", "complex tensors become real ones with a last dim of 2; after normalise", decompose_complex},
    {"decompose-structures", "write attention and experts, each one op of a capture, in plain PyTorch",
     decompose_structures},
    {"eliminate-dead-code", "remove nodes that have no effect and whose results nobody uses", eliminate_dead_code},
    {"fix-dims", "put the number in the place of a size that has one value only", fix_dims},
    {"functionalise", "replace writes to tensors by new tensors; what inputs and buffers get becomes a result",
     functionalise},
    {"join-views", "permutations of permutations become one, reshapes of reshapes too; after normalise", join_views},
    {"merge-equal-nodes", "compute once what is computed twice from the same values; after functionalise",
     merge_equal_nodes},
    {"normalise", "one op for one thing, and nothing that does nothing; after functionalise", normalise},
    {"recognise", "attention, norms and rotary embeddings become one op each; after normalise", recognise},
    {"verify", "check structure and every node against its schema; changes nothing", verify_program},
};

Result<bool> run_guarded(const Pass& pass, Program& program, PassContext& context, const PipelineHooks& hooks) {
  try {
    Result<bool> changed = pass.run(program, context);
    if (changed && *changed && hooks.verify_each) {
      if (Status status = verify_first(program); !status) {
        Error error = std::move(status).error();
        error.code = ErrorCode::kInternal;
        return fail(error.in("the check after the pass: the pass broke the program"));
      }
    }
    return changed;
  } catch (const InternalError& error) {
    return fail(ErrorCode::kInternal, error.what(), "this is a bug in argosy; please report it with the reproducer");
  }
}

}  // namespace

Pipeline& Pipeline::add(Pass pass) {
  passes_.push_back(std::move(pass));
  return *this;
}

Result<bool> Pipeline::run(Program& program, PassContext& context, const PipelineHooks& hooks) const {
  bool has_changed = false;
  for (size_t i = 0; i < passes_.size(); ++i) {
    const Pass& pass = passes_[i];
    if (hooks.before_pass) hooks.before_pass(pass.name, program);
    std::optional<Program> before;
    if (hooks.on_failure) before = program;
    auto start = std::chrono::steady_clock::now();
    Result<bool> result = run_guarded(pass, program, context, hooks);
    if (!result) {
      Error error = std::move(result).error();
      error.in(format("pass {}", pass.name));
      if (hooks.on_failure) {
        std::vector<std::string> remaining;
        for (size_t j = i; j < passes_.size(); ++j) remaining.push_back(passes_[j].text());
        hooks.on_failure(*before, remaining, error);
      }
      return fail(std::move(error));
    }
    has_changed |= *result;
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (hooks.after_pass) hooks.after_pass(pass.name, program, *result, elapsed.count());
  }
  return has_changed;
}

std::span<const NamedPass> all_passes() { return kPasses; }

namespace {

/// Takes the first item off a list that is separated by commas; commas inside braces do not count.
std::string_view take_item(std::string_view& texts) {
  size_t end = 0;
  for (int depth = 0; end < texts.size() && (texts[end] != ',' || depth > 0); ++end) {
    if (texts[end] == '{') ++depth;
    if (texts[end] == '}') --depth;
  }
  std::string_view item = texts.substr(0, end);
  texts.remove_prefix(std::min(end + 1, texts.size()));
  return item;
}

Result<Pass> parse_pass(std::string_view text, std::span<const NamedPass> known) {
  size_t brace = text.find('{');
  bool has_settings = brace != std::string_view::npos && text.ends_with('}');
  std::string_view name = text.substr(0, brace);
  auto pass = std::ranges::find(known, name, &NamedPass::name);
  if (pass == known.end()) {
    std::vector<std::string> names;
    for (const NamedPass& each : known) names.emplace_back(each.name);
    return fail(ErrorCode::kInvalidInput, format("there is no pass {}", quoted(name)),
                format("the passes are: {}", join(names, ", ")));
  }
  if (pass->make_with != nullptr) {
    return pass->make_with(has_settings ? text.substr(brace + 1, text.size() - brace - 2) : std::string_view());
  }
  if (brace != std::string_view::npos) {
    return fail(ErrorCode::kInvalidInput, format("pass {} has no settings", name), format("write {} alone", name));
  }
  return pass->make();
}

}  // namespace

Result<Pipeline> parse_pipeline(std::string_view texts, std::span<const NamedPass> known) {
  Pipeline pipeline;
  while (!texts.empty()) {
    ARGOSY_TRY(Pass pass, parse_pass(take_item(texts), known));
    pipeline.add(std::move(pass));
  }
  return pipeline;
}

std::string settings_text(const std::map<std::string, int64_t>& numbers) {
  std::vector<std::string> items;
  for (const auto& [name, number] : numbers) items.push_back(format("{}={}", name, number));
  return join(items, ",");
}

Result<std::map<std::string, int64_t>> parse_settings(std::string_view text) {
  std::map<std::string, int64_t> numbers;
  while (!text.empty()) {
    std::string_view item = take_item(text);
    size_t sign = item.find('=');
    int64_t number = 0;
    const char* end = item.data() + item.size();
    bool is_number = sign != std::string_view::npos &&
                     std::from_chars(item.data() + sign + 1, end, number) == std::from_chars_result{end, std::errc()};
    if (!is_number || sign == 0) {
      return fail(ErrorCode::kInvalidInput, format("{} is no setting of a pass", quoted(item)), "write NAME=NUMBER");
    }
    numbers[std::string(item.substr(0, sign))] = number;
  }
  return numbers;
}

}  // namespace argosy
