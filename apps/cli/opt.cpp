#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "commands.h"
#include "debug/named_passes.h"
#include "driver/attach_weights.h"
#include "driver/executorch/lower_executorch.h"
#include "driver/export_hooks.h"
#include "driver/read_input.h"
#include "driver/write_program.h"
#include "ir/text.h"
#include "passes/run_passes.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr size_t kMaxStdinBytes = size_t{1} << 30;

bool is_stdout(const OptOptions& options) {
  // Who asks for a check and names no output wants the answer only.
  return options.output == "-" || (options.output.empty() && !options.check_text);
}

std::filesystem::path reproducer_folder(const OptOptions& options) {
  if (!options.repro_dir.empty()) return options.repro_dir;
  std::filesystem::path base = options.output.empty() || options.output == "-" ? options.input : options.output;
  if (base == "-") base = "stdin";
  return base.replace_extension(".repro");
}

Result<std::string> read_stdin() {
  std::string text;
  char buffer[1 << 16];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, count);
    if (text.size() > kMaxStdinBytes) {
      return fail(ErrorCode::kInvalidInput, format("stdin has more than {}", format_bytes(kMaxStdinBytes)),
                  "pass a file");
    }
  }
  return text;
}

Result<InputProgram> read_program(const OptOptions& options, const Environment& environment, Diagnostics& diagnostics) {
  InputOptions input;
  input.schemas = options.schemas.empty() ? environment.schemas : std::filesystem::path(options.schemas);
  input.diagnostics = &diagnostics;
  if (options.input != "-") return read_input(options.input, input);
  ARGOSY_TRY(std::string text, read_stdin());
  auto program = parse(text);
  if (!program) return fail(program.error().in("stdin"));
  return InputProgram{*std::move(program), {}};
}

bool asks_for(const std::vector<std::string>& wanted, const std::string& pass, bool has_changed) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return name == pass || name == "all" || (name == "changed" && has_changed);
  });
}

/// A name that no pass has would silently print nothing.
Status check_names(const std::vector<std::string>& wanted, const Pipeline& pipeline, std::string_view flag,
                   bool allows_changed) {
  for (const std::string& name : wanted) {
    if (name == "all" || (allows_changed && name == "changed")) continue;
    auto passes = pipeline.passes();
    if (std::none_of(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; })) {
      return fail(ErrorCode::kInvalidInput, format("{}={}: no such pass among those that are run", flag, name),
                  format("name one of --passes, {}all", allows_changed ? "changed or " : "or "));
    }
  }
  return {};
}

struct PassTime {
  std::string pass;
  double seconds;
  bool has_changed;
};

/// What the flags of opt want to see while the pipeline runs.
class Observer {
 public:
  Observer(const OptOptions& options, Terminal& terminal)
      : options_(options),
        terminal_(terminal),
        watch_({.dump_dir = options.dump_dir,
                .verify_each = options.verify_each,
                .repro_dir = reproducer_folder(options)}) {}

  PipelineHooks hooks() {
    PipelineHooks hooks = watch_.hooks();
    hooks.before_pass = [this](const std::string& pass, const Program& program) { before(pass, program); };
    auto dump = hooks.after_pass;
    hooks.after_pass = [this, dump](const std::string& pass, const Program& program, bool has_changed, double seconds) {
      after(pass, program, has_changed, seconds);
      if (dump) dump(pass, program, has_changed, seconds);
    };
    return hooks;
  }

  /// Reports where the reproducer of a failed pass is.
  void report_failure() {
    if (std::string text = watch_.failure_text(); !text.empty()) terminal_.print_error(format("  {}\n", text));
  }

  void report_times() {
    if (!options_.time_passes) return;
    Table table("rll");
    double sum = 0;
    for (const PassTime& time : times_) {
      table.add({format("{:.3f} ms", time.seconds * 1e3), time.pass, time.has_changed ? "" : "(no change)"});
      sum += time.seconds;
    }
    table.add({format("{:.3f} ms", sum * 1e3), "total"});
    terminal_.print_error(table.text());
  }

  void add_members(JsonWriter& writer) const {
    writer.key("passes").begin_array();
    for (const PassTime& time : times_) {
      writer.begin_object().key("name").value(time.pass).key("seconds").value(time.seconds);
      writer.key("has_changed").value(time.has_changed).end_object();
    }
    writer.end_array();
  }

  Watch& watch() { return watch_; }

 private:
  void before(const std::string& pass, const Program& program) {
    if (asks_for(options_.print_before, pass, false)) {
      terminal_.print_error(format("# before {}\n{}", pass, print(program)));
    }
  }

  void after(const std::string& pass, const Program& program, bool has_changed, double seconds) {
    times_.push_back({pass, seconds, has_changed});
    terminal_.log(LogLevel::kInfo, format("{}: {:.3f} ms{}", pass, seconds * 1e3, has_changed ? "" : ", no change"));
    if (asks_for(options_.print_after, pass, has_changed)) {
      terminal_.print_error(format("# after {}{}\n{}", pass, has_changed ? "" : " (no change)", print(program)));
    }
  }

  const OptOptions& options_;
  Terminal& terminal_;
  std::vector<PassTime> times_;
  Watch watch_;
};

size_t count_nodes(const Program& program) {
  size_t count = 0;
  for (const Component& component : program.components) {
    for (const Graph& graph : component.graphs) count += graph.node_count();
  }
  return count;
}

/// Prints the program, reads that back, compares, prints again.
Status check_text(const Program& program) {
  std::string text = print(program);
  auto parsed = parse(text);
  if (!parsed) return fail(parsed.error().in("the program's own text"));
  if (auto found = difference(program, *parsed)) {
    return fail(ErrorCode::kInternal, format("the program's text reads back as another program: {}", *found),
                "this is a bug in argosy; please report it");
  }
  if (print(*parsed) != text) {
    return fail(ErrorCode::kInternal, "the program that was read back prints another text",
                "this is a bug in argosy; please report it");
  }
  return {};
}

Status write_result(const OptOptions& options, const InputProgram& input, Terminal& terminal, Watch& watch,
                    Diagnostics& diagnostics) {
  JsonWriter& writer = terminal.summary().members();
  writer.key("output");
  options.output.empty() || is_stdout(options) ? writer.null() : writer.value(options.output);
  if (is_stdout(options)) {
    if (terminal.wants_json()) {
      writer.key("program").value(print(input.program));
      return {};
    }
    if (terminal.print(print(input.program))) return {};
    return fail(ErrorCode::kIo, "cannot write to stdout", "check where it leads to");
  }
  if (options.output.empty()) return {};
  ExportHooks hooks;
  hooks.watch = &watch;
  BackendOptions backends = options.backend_options;
  backends.set_hooks(&hooks);
  return write_program(options.output, input, terminal.progress_hook(), backends, diagnostics);
}

int list_passes(Terminal& terminal) {
  if (terminal.wants_json()) {
    JsonWriter& writer = terminal.summary().members();
    writer.key("passes").begin_array();
    for (const NamedPass& pass : every_pass())
      writer.begin_object().key("name").value(pass.name).key("what").value(pass.summary).end_object();
    writer.end_array();
    return kDone;
  }
  Table table("ll");
  for (const NamedPass& pass : every_pass()) table.add({std::string(pass.name), std::string(pass.summary)});
  return terminal.print(table.text()) ? kDone : kFailed;
}

Status opt(const OptOptions& options, const Environment& environment, Terminal& terminal, Observer& observer,
           Diagnostics& diagnostics) {
  ARGOSY_TRY(Pipeline pipeline, parse_pipeline(options.passes, every_pass()));
  ARGOSY_TRY_STATUS(check_names(options.print_before, pipeline, "--print-ir-before", false));
  ARGOSY_TRY_STATUS(check_names(options.print_after, pipeline, "--print-ir-after", true));
  if (!options.output.empty() && !is_stdout(options)) ARGOSY_TRY_STATUS(check_output(options.output));
  ARGOSY_TRY(InputProgram input, read_program(options, environment, diagnostics));
  if (!options.checkpoint.empty()) {
    ARGOSY_TRY_STATUS(attach_weights(input.program, options.checkpoint, options.plan, diagnostics));
  }
  if (options.for_executorch) {
    ARGOSY_TRY(pipeline, executorch_passes(input.program, options.backend_options.executorch, {}, diagnostics));
  }
  uint64_t node_count = count_nodes(input.program);
  PassContext context{diagnostics};
  ARGOSY_TRY([[maybe_unused]] bool has_changed, verify_and_run(pipeline, input.program, context, observer.hooks()));
  ARGOSY_TRY_STATUS(observer.watch().dump_status());
  observer.add_members(terminal.summary().members().key("nodes").value(node_count));
  if (options.check_text) {
    ARGOSY_TRY_STATUS(check_text(input.program));
    terminal.print_error(format("verified {} nodes; the text reads back as the same program\n", node_count));
  }
  return write_result(options, input, terminal, observer.watch(), diagnostics);
}

}  // namespace

int run_opt(const OptOptions& options, const Environment& environment, Terminal& terminal) {
  if (options.list_passes) return list_passes(terminal);
  Observer observer(options, terminal);
  Diagnostics diagnostics;
  Status status = opt(options, environment, terminal, observer, diagnostics);
  observer.report_times();
  if (status) return kDone;
  terminal.print_error(status.error());
  observer.report_failure();
  terminal.print_further(diagnostics, status.error());
  return kFailed;
}

}  // namespace argosy::cli
