#pragma once

#include <functional>
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
  /// A pass failed: the program as it was before that pass, and the names of the passes from it on. Costs a copy of the
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
  Pass (*make)();
};

/// Every pass that can be asked for by name, sorted.
std::span<const NamedPass> all_passes();

/// "eliminate-dead-code,verify" -> a pipeline; an unknown name is an error that lists the known ones.
Result<Pipeline> parse_pipeline(std::string_view names);

}  // namespace argosy
