#include "debug/golden.h"

#include "base/text.h"
#include "commands.h"
#include "io/file.h"
#include "io/write_file.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr uint64_t kMaxGoldenBytes = uint64_t{16} << 20;

/// True: as expected, or made so.
Result<bool> run_one(const std::string& path, bool update, Terminal& terminal) {
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxGoldenBytes));
  ARGOSY_TRY(GoldenFile golden, parse_golden(text, path));
  GoldenOutcome outcome = run_golden(golden);
  std::string difference = golden_difference(golden, outcome, path);
  if (difference.empty()) return true;
  if (update) {
    ARGOSY_TRY_STATUS(write_file(path, with_outcome(golden, outcome), Overwrite::kReplace));
    if (!terminal.wants_json()) terminal.print(format("updated {}\n", path));
    return true;
  }
  if (!terminal.wants_json()) terminal.print(format("{}to accept it: tools/update_goldens.py {}\n", difference, path));
  return false;
}

}  // namespace

int run_golden_files(const OptOptions& options, Terminal& terminal) {
  uint64_t failures = 0;
  for (const std::string& path : options.golden) {
    Result<bool> is_fine = run_one(path, options.update_golden, terminal);
    if (!is_fine) terminal.print_error(is_fine.error());
    failures += !is_fine || !*is_fine;
  }
  terminal.summary().members().key("golden_files").value(uint64_t{options.golden.size()}).key("failed").value(failures);
  if (!terminal.wants_json())
    terminal.print(format("{}, {} failed\n", count_of(options.golden.size(), "golden file"), failures));
  return failures == 0 ? kDone : kFailed;
}

}  // namespace argosy::cli
