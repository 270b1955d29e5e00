#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace argosy {

/// What the caller of a pipeline wants to see or check. Empty functions are not called.
struct PipelineHooks {
  bool verify_each = false;  // after every pass that changed something
  std::function<void(const std::string& pass, const Program&)> before_pass;
  std::function<void(const std::string& pass, const Program&, bool has_changed, double seconds)> after_pass;
  /// A pass failed: the program as it was before that pass, and the texts of the passes from it on. Costs a copy of the
  /// program per pass.
  std::function<void(const Program& before, std::span<const std::string> remaining, const Error&)> on_failure;
};

/// Passes in order. Running stops at the first that fails; its error says which pass it was. A bug of ours inside a
/// pass (InternalError) becomes an error of code kInternal.
class Pipeline {
 public:
  Pipeline& add(Pass pass);
  Result<bool> run(Program& program, PassContext& context, const PipelineHooks& hooks = {}) const;
  std::span<const Pass> passes() const { return passes_; }

 private:
  std::vector<Pass> passes_;
};

/// A pass that can be asked for by name.
struct NamedPass {
  std::string_view name;
  std::string_view summary;  // one line for --help
  Pass (*make)() = nullptr;
  /// Used instead of `make` by passes with settings.
  Result<Pass> (*make_with)(std::string_view settings) = nullptr;
};

/// Every pass of this layer that can be asked for by name, sorted. Backends have more.
std::span<const NamedPass> all_passes();

/// "eliminate-dead-code,fix-sizes{batch=1}" -> a pipeline of known passes; an unknown name is an error that lists them.
Result<Pipeline> parse_pipeline(std::string_view texts, std::span<const NamedPass> known = all_passes());

/// Settings of the form "batch=1,sequence=128".
std::string settings_text(const std::map<std::string, int64_t>& numbers);
Result<std::map<std::string, int64_t>> parse_settings(std::string_view text);

}  // namespace argosy
