#include "debug/watch.h"

#include <algorithm>

#include "base/text.h"
#include "debug/named_passes.h"
#include "debug/reproducer.h"
#include "io/write_file.h"
#include "ir/text.h"

namespace argosy {
namespace {

/// The failing pass, and those after it as far as they can be run again by name: not from the first one on that depends
/// on a plan ("bind-graphs").
std::span<const std::string> for_replay(std::span<const std::string> remaining) {
  size_t count = std::min<size_t>(remaining.size(), 1);
  auto has_name = [](std::string_view pass) {
    return std::ranges::find(every_pass(), pass.substr(0, pass.find('{')), &NamedPass::name) != every_pass().end();
  };
  while (count < remaining.size() && has_name(remaining[count])) ++count;
  return remaining.first(count);
}

}  // namespace

PipelineHooks Watch::hooks() {
  PipelineHooks hooks;
  hooks.verify_each = options_.verify_each;
  if (!options_.dump_dir.empty()) {
    hooks.after_pass = [this](const std::string& pass, const Program& program, bool, double) { dump(pass, program); };
  }
  if (!options_.repro_dir.empty()) {
    hooks.on_failure = [this](const Program& before, std::span<const std::string> remaining, const Error& error) {
      if (options_.only_bugs && error.code != ErrorCode::kInternal) return;
      reproducer_ = write_reproducer(options_.repro_dir, before, for_replay(remaining), options_.verify_each, error);
    };
  }
  return hooks;
}

void Watch::dump(const std::string& pass, const Program& program) {
  ++passes_;
  bool is_wanted =
      options_.dump_after.empty() || std::ranges::find(options_.dump_after, pass) != options_.dump_after.end();
  if (!is_wanted || !dump_status_) return;
  std::error_code error;
  std::filesystem::create_directories(options_.dump_dir, error);  // if it fails, so does the file
  dump_status_ =
      write_file(options_.dump_dir / format("{:02}_{}.ir", passes_, pass), print(program), Overwrite::kReplace);
}

std::string Watch::failure_text() const {
  if (!reproducer_) return {};
  std::string folder = options_.repro_dir.string();
  return *reproducer_ ? format("reproducer: {}/  (argosy replay {})", folder, folder)
                      : format("no reproducer was written: {}", reproducer_->error().message);
}

}  // namespace argosy
