#include "argosy/version.h"
#include "base/text.h"
#include "commands.h"
#include "debug/reproducer.h"

namespace argosy::cli {

int run_replay(const ReplayOptions& options, Terminal& terminal) {
  auto reproducer = read_reproducer(options.folder);
  if (!reproducer) {
    terminal.print_error(reproducer.error());
    return kFailed;
  }
  if (reproducer->version != version()) {
    terminal.log(LogLevel::kWarn, format("{} was written by argosy {}, this is {}", options.folder,
                                         argosy::quoted(reproducer->version), version()));
  }
  std::string passes = join(reproducer->passes, ", ");
  Status status = replay(*reproducer);
  bool is_same = !status && to_text(status.error()) == reproducer->error;
  terminal.summary().members().key("outcome").value(status ? "passes" : is_same ? "same error" : "another error");
  if (status) {
    if (!terminal.wants_json()) terminal.print(format("passes now: {}\n", passes));
    return kDone;
  }
  terminal.print_error(status.error());
  if (!terminal.wants_json())
    terminal.print(is_same ? "fails with the same error\n"
                           : format("fails with another error; it was:\n{}", reproducer->error));
  return kFailed;
}

}  // namespace argosy::cli
