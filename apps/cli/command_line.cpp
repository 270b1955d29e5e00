#include "command_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "argosy/version.h"
#include "base/text.h"
#include "command_line_errors.h"
#include "command_line_parts.h"
#include "command_line_scripts.h"
#include "terminal.h"

namespace argosy::cli {
namespace {

void add_global(CLI::App& app, GlobalOptions& options) {
  const std::map<std::string, LogLevel> levels = {
      {"error", LogLevel::kError}, {"warn", LogLevel::kWarn}, {"info", LogLevel::kInfo}, {"debug", LogLevel::kDebug}};
  app.add_option("--log-level", options.log_level, "error, warn (default), info or debug")->transform(one_of(levels));
  const std::map<std::string, ProgressMode> modes = {{"auto", ProgressMode::kAuto},
                                                     {"bar", ProgressMode::kBar},
                                                     {"json", ProgressMode::kJson},
                                                     {"off", ProgressMode::kOff}};
  app.add_option("--progress", options.progress, "auto (default), bar, json (one object a line) or off")
      ->transform(one_of(modes));
}

void add_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* command =
      app.add_subcommand("inspect", "Show what is in a file or folder: interface, ops, tensors, totals");
  command
      ->add_option("path", options.path,
                   ".pt2, .capture, .ir, .onnx, .pte, .safetensors, an index, or a folder: a model's or a bundle's")
      ->required();
  command->add_option("--top", options.top, "Rows of long lists (0: all)")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20).description(""));
  command->add_option("--schemas", options.schemas, "File of op schemas, for .pt2 archives");
  command->add_option("--html", options.html,
                      "Also write a page: of an .onnx its graph, layer by layer; of a .pte how its memory is used");
}

void add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* command =
      app.add_subcommand("explain", "Say in short what an export is made of and what was recognised in it");
  command->add_option("path", options.path, "The folder that argosy export wrote, an .onnx or a .pte")->required();
}

void add_opt(CLI::App& app, OptOptions& options) {
  CLI::App* command = app.add_subcommand("opt", "Run named passes on a program");
  command->add_option("input", options.input, "IR text (.ir, or - for stdin), .pt2 or .capture");
  command->add_option("-o,--output", options.output,
                      "Where to: .ir, .pt2, .onnx or .pte; - (default) is IR text on stdout");
  add_recipe(*command, options.backend_options.executorch);
  command->add_option("--shape", options.backend_options.executorch.shape, "Of .pte: the largest sizes of dims");
  command->add_option("--passes", options.passes, "Names separated by commas; see --list-passes");
  command->add_flag("--for-executorch", options.for_executorch, "The passes of an export to ExecuTorch, instead");
  command->add_option("--task", options.backend_options.executorch.task.task, "Of an export to ExecuTorch");
  command->add_option("--max-seq-len", options.backend_options.executorch.task.max_seq_len, "Of such a task");
  command->add_flag("--list-passes", options.list_passes, "List the passes and stop");
  command->add_option("--print-ir-before", options.print_before, "Print the program to stderr before <pass>|all")
      ->delimiter(',');
  command->add_option("--print-ir-after", options.print_after, "Print it to stderr after <pass>|changed|all")
      ->delimiter(',');
  command->add_option("--dump-dir", options.dump_dir, "Write the program after each pass as a numbered file");
  command->add_flag("--verify-each", options.verify_each, "Verify the program after every pass that changed it");
  command->add_flag("--time-passes", options.time_passes, "Print the time of each pass to stderr");
  command->add_flag("--check-text", options.check_text, "Check that the program's text reads back as the same program");
  command->add_option("--repro-dir", options.repro_dir,
                      "Where a failing pass leaves its reproducer (default: <output or input>.repro)");
  command->add_option("--schemas", options.schemas, "File of op schemas, for .pt2 archives");
  command->add_option("--checkpoint", options.checkpoint,
                      "Gives the program its weights: a folder or .safetensors file");
  command->add_option("--plan", options.plan, "How weights come from the checkpoint (default: by their names)");
  command->add_option("--golden", options.golden, "Run golden files instead of an input");
  command->add_flag("--update-golden", options.update_golden, "Rewrite golden files that differ");
}

void add_replay(CLI::App& app, ReplayOptions& options) {
  CLI::App* command = app.add_subcommand("replay", "Rerun the reproducer that a failing pass left");
  command->add_option("folder", options.folder, "The .repro folder")->required();
}

void add_capture(CLI::App& app, CaptureOptions& options) {
  CLI::App* command =
      app.add_subcommand("capture", "Capture a model's graphs: from the cache, else by python -m argosy.capture");
  add_model(*command, options.source, "The model's folder (config.json is enough), or ORG/NAME of the Hub");
  command->add_option("--task", options.task, "Such as text-generation; by default what the model's class is for");
  command->add_option("--shape", options.shape, "Narrows dims: batch=1,sequence=1..2048");
  add_inputs(*command, options.inputs);
  add_dtype(command, options.dtype);
  command->add_flag("--prefill", options.prefill, "Also a graph for prompts without a past");
  add_trace(*command, options.trace);
  command->add_flag("--recapture", options.recapture, "Capture anew, whatever the cache has");
  add_registry(*command, options.registry);
  command->add_option("-o,--output", options.output, "The .capture file to write")->required();
}

void add_registry_commands(CLI::App& command, CacheOptions& options) {
  CLI::App* keygen =
      command.add_subcommand("keygen", "Make a key that signs what is pushed, and print its public half");
  keygen->add_option("path", options.path, "The file to write; keep it to yourself")->required();
  keygen->callback([&options] { options.action = CacheAction::kKeygen; });
  CLI::App* push =
      command.add_subcommand("push", "Put entries into a registry's folder, which others use by --registry");
  push->add_option("folder", options.path, "The folder; any web server may serve it")->required();
  push->add_option("keys", options.keys, "First digits of the keys of entries (default: all)");
  push->add_option("--sign", options.signing_key, "The key that argosy cache keygen made")->required();
  push->callback([&options] { options.action = CacheAction::kPush; });
  CLI::App* pull = command.add_subcommand("pull", "Take entries of a registry into the cache");
  pull->add_option("keys", options.keys, "Whole keys (default, of a folder: all)");
  add_registry(*pull, options.registry);
  pull->callback([&options] { options.action = CacheAction::kPull; });
}

/// It has no result that could be JSON: it serves until it is stopped.
void add_serve(CLI::App& command, CacheOptions& options) {
  CLI::App* serve = command.add_subcommand("serve", "Serve a registry's folder by HTTP, for reading");
  serve->add_option("folder", options.path, "The folder that argosy cache push wrote")->required();
  serve->add_option("--host", options.host, "The address to listen at (default: 127.0.0.1, this machine alone)");
  serve->add_option("--port", options.port, "0: any that is free (default: 8470)")
      ->check(CLI::Range(0, 65535).description(""));
  serve->callback([&options] { options.action = CacheAction::kServe; });
}

void add_cache(CLI::App& app, CacheOptions& options) {
  CLI::App* command = app.add_subcommand("cache", "List, prune and share captures and weight plans");
  command->require_subcommand(1);
  CLI::App* list =
      command->add_subcommand("ls", "List the entries: which model each was first made for, its size and age");
  list->add_flag("--long", options.is_long, "Also classes, tasks and the versions that made them");
  list->callback([&options] { options.action = CacheAction::kList; });
  CLI::App* prune = command->add_subcommand("prune", "Remove entries that are damaged or superseded by newer ones");
  prune->add_flag("--all", options.all, "Remove everything");
  prune->add_option("--older-than", options.older_than_days, "Remove what is older than so many days, too")
      ->check(CLI::Range(0, 1 << 20).description(""));
  prune->add_flag("--dry-run", options.dry_run, "Only say what would be removed");
  prune->callback([&options] { options.action = CacheAction::kPrune; });
  CLI::App* import_command = command->add_subcommand("import", "Take the entries of another cache");
  import_command->add_option("path", options.path, "What cache export wrote, or a cache's folder")->required();
  import_command->callback([&options] { options.action = CacheAction::kImport; });
  CLI::App* export_command = command->add_subcommand("export", "Write entries into one file, for another machine");
  export_command->add_option("keys", options.keys, "First digits of the keys of entries (default: all)");
  export_command->add_option("-o,--output", options.path, "The file to write, a zip")->required();
  export_command->callback([&options] { options.action = CacheAction::kExport; });
  add_registry_commands(*command, options);
}

void add_weights(CLI::App& app, WeightsOptions& options) {
  CLI::App* command = app.add_subcommand("weights", "Write a model's weights under the model's own names");
  add_model(*command, options.source,
            "The model's folder, or ORG/NAME; with --plan also an index or a .safetensors file");
  command->add_option("--plan", options.plan,
                      "How weights come from the checkpoint (default: the cache's, else by Python)");
  command->add_option("--task", options.task, "Such as text-generation; by default what the model's class is for");
  add_dtype(command, options.dtype);
  command->add_option("--adapter", options.adapter, "The folder of a LoRA adapter of PEFT, which is merged");
  command->add_flag("--replan", options.replan, "Plan anew, whatever the cache has");
  add_registry(*command, options.registry);
  command->add_option("-o,--output", options.output, "The .safetensors file to write")->required();
}

void add_check(CLI::App& app, CheckOptions& options) {
  CLI::App* command = app.add_subcommand("check", "Compare an export with its model, by python -m argosy.check");
  command->add_option("bundle", options.bundle, "What argosy export wrote: a file or folder")->required();
  add_model(*command, options.source, "The folder that it was exported from, or ORG/NAME", "--against,--model");
  command->add_option("--calls", options.calls, "Which ones: edge, observed, greedy, text (default: all), by commas");
  command->add_option("--text", options.given.text, "A file of text that both read, for figures of quality");
  command->add_option("--audio", options.given.audio, "A WAV file that both hear, for figures of quality");
  add_inputs(*command, options.inputs);
  command->add_option("--variant", options.variant,
                      "Of a bundle that has several: fp32, q4 and so on (default: its first)");
  add_adapters_apart(*command, options.adapters_apart,
                     "NAME=DIR: a LoRA adapter that the bundle has in a file of its own; again for another");
  command->add_option("--tokens", options.tokens, "Instead: so many greedy tokens, in the engine that a bundle is for")
      ->check(CLI::Range(1, 4096).description(""));
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command = app.add_subcommand("run", "Generate text with a bundle in its engine, by python -m argosy.run");
  command->add_option("bundle", options.bundle, "The folder that argosy export onnx --for ENGINE wrote")->required();
  command->add_option("--variant", options.variant,
                      "Of a bundle that has several: fp32, q4 and so on (default: its first)");
  command->add_option("--adapter", options.adapter, "A LoRA adapter that the bundle has in a file of its own, by name");
  command->add_option("--prompt", options.prompt,
                      "What the text goes on from; - (default, if that is no terminal): standard input");
  command->add_option("--system", options.system, "What the conversation of a chat template begins with");
  command->add_option("--image", options.images, "A file, for models that see; again for another")
      ->allow_extra_args(false);
  command->add_option("--audio", options.audios, "A file, for models that hear; again for another")
      ->allow_extra_args(false);
  command->add_option("--max-new-tokens", options.max_new_tokens, "Stop after so many (default: 128)")
      ->check(CLI::Range(1, 1 << 20).description(""));
  command
      ->add_option("--temperature", options.temperature,
                   "Draw tokens, 1: by the model's own odds (default: 0, always the best)")
      ->check(CLI::Range(0.0, 1000.0).description(""));
  command->add_option("--top-k", options.top_k, "With --temperature: only among so many best")
      ->check(CLI::Range(1, 1 << 24).description(""));
  command
      ->add_option("--top-p", options.top_p,
                   "With --temperature: only among the fewest that are as likely together, of 1")
      ->check(CLI::Range(0.0, 1.0).description(""));
  command->add_option("--seed", options.seed, "With --temperature: the same one draws the same text (default: any)")
      ->check(CLI::Range(int64_t{0}, int64_t{INT32_MAX}).description(""));
  command->add_flag("--raw", options.raw, "The prompt as it is, without the model's chat template");
}

void add_push(CLI::App& app, PushOptions& options) {
  CLI::App* command = app.add_subcommand("push", "Publish a bundle on the Hub in one commit, by python -m argosy.push");
  command->add_option("folder", options.folder, "The folder that argosy export wrote")->required();
  command->add_option("repository", options.repository, "ORG/NAME; made if there is none")->required();
  command->add_option("--revision", options.revision, "The branch (default: main); made if there is none");
  command->add_flag("--private", options.is_private, "If the repository is made, only its owners see it");
  command->add_flag("--all-files", options.all_files, "Everything in the folder, also what no export wrote");
  command->add_flag("--dry-run", options.dry_run, "Say what would be sent, and ask nothing of any server");
}

/// Bytes, as 512MB says them.
template <class Size>
void add_size(CLI::App& command, const std::string& flag, Size& size, const std::string& what) {
  command.add_option(flag, size, what)
      ->transform(CLI::AsSizeValue(true).description(""))
      ->transform(CLI::Validator(
          [](std::string& text) { return text.starts_with('-') ? text + " is not a size, such as 8GB" : ""; }, ""));
}

void add_sweep(CLI::App& app, SweepOptions& options) {
  CLI::App* command = app.add_subcommand("sweep", "Export many models and report on them, by python -m argosy.sweep");
  command->add_option("jobs_file", options.jobs_file, "One JSON object a line, each a job: {\"model\": …}")->required();
  command->add_option("-o,--output", options.output,
                      "The folder for results and exports (default: as the file, without .jsonl)");
  command->add_option("--jobs", options.jobs, "How many at a time (default: as cores and memory allow)")
      ->check(CLI::Range(1, 4096).description(""));
  command->add_option("--seconds", options.seconds, "The most that one job may take (default: 3600; 0: any)")
      ->check(CLI::Range(0.0, 1e9).description(""));
  add_size(*command, "--memory", options.memory,
           "The most memory for one job, such as 8GB (default: its share of the machine's; 0: any)");
  add_size(*command, "--disk", options.disk, "The most room on the disk for one job, such as 20GB (default: any)");
  command->add_option("--retries", options.retries, "How often to repeat what the machine ended (default: 1)")
      ->check(CLI::Range(0, 100).description(""));
  command->add_flag("--retry-failed", options.retries_failed, "Run jobs again that ended badly");
  command->add_flag("--discard", options.discard, "Keep results alone, not what was exported");
  command->add_option("--shard", options.shard,
                      "I/N: only this part of the jobs, such as 1/8; parts may share a folder");
  command
      ->add_option_function<std::vector<std::string>>(
          "--ray",
          [&options](const std::vector<std::string>& address) {
            options.uses_ray = true;
            if (!address.empty()) options.ray = address.front();
          },
          "Hand the jobs to the Ray cluster there (default: that of RAY_ADDRESS, else one on this machine)")
      ->expected(0, 1);
  command->add_option("--report", options.reported,
                      "Run nothing: report on the results in these folders, such as those of shards");
  command->add_option("--compare", options.compared, "The folder of an earlier sweep, to say what is different");
}

void add_lint(CLI::App& app, LintOptions& options) {
  CLI::App* command = app.add_subcommand("lint", "Check a bundle, whoever wrote it, against its engine's conventions");
  command->add_option("folder", options.folder, "The bundle's folder");
  command->add_option("--for", options.engine, "Which engine (default: the one that the folder is made for)")
      ->check(one_of(names_of_engines()));
  command->add_flag("--list-rules", options.list_rules, "List the rules and stop");
}

void add_doctor(CLI::App& app) { app.add_subcommand("doctor", "Say what is installed and what that allows"); }

/// What CLI11 cannot say: which options need which others.
void check(const OptOptions& options) {
  if (options.list_passes) return;
  if (options.update_golden && options.golden.empty()) throw CLI::RequiredError("--golden, for --update-golden");
  if (!options.golden.empty() && !options.input.empty()) {
    throw CLI::ValidationError("--golden", "takes the place of an input, " + options.input + " was given too");
  }
  if (!options.plan.empty() && options.checkpoint.empty()) throw CLI::RequiredError("--checkpoint, for --plan");
  if (options.golden.empty() && options.input.empty()) throw CLI::RequiredError("input");
}

void check(const CLI::App& command, RunOptions& options) {
  if (!options.prompt.empty() || !options.audios.empty()) return;
  if (command.count("--prompt") > 0) throw CLI::ValidationError("--prompt", "is empty");
  if (isatty(STDIN_FILENO) != 0) throw CLI::RequiredError("--prompt, or --audio,");
  options.prompt = "-";
}

void check(const LintOptions& options) {
  if (!options.list_rules && options.folder.empty()) throw CLI::RequiredError("folder");
}

/// Of every command that has a result; Terminal::summary() becomes the object.
void add_json(CLI::App& app, bool& json) {
  auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* command : commands) add_json(*command, json);
  if (commands.empty()) app.add_flag("--json", json, "The result as one JSON object on stdout");
}

/// "export onnx": what was called.
std::string called(const CLI::App& app) {
  std::string path;
  for (const CLI::App* each = &app; !each->get_subcommands().empty();) {
    each = each->get_subcommands().front();
    path += (path.empty() ? "" : " ") + each->get_name();
  }
  return path;
}

void add_completion(CLI::App& app, std::string& shell) {
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands and options in a shell");
  command->add_option("shell", shell, "bash, zsh or fish")->required()->check(one_of({"bash", "zsh", "fish"}));
}

/// As help lists commands.
void group_by_topic(CLI::App& app) {
  const std::pair<const char*, std::vector<const char*>> topics[] = {
      {"Make", {"export", "sweep", "capture", "weights"}},
      {"Look and try", {"explain", "inspect", "run", "check", "lint"}},
      {"Share and keep", {"push", "cache", "doctor", "completion"}},
      {"For developers of argosy", {"opt", "replay"}},
  };
  for (const auto& [topic, commands] : topics) {
    for (const char* command : commands) app.get_subcommand(command)->group(topic);
  }
  app.footer(
      "\nargosy help COMMAND says more, as in: argosy help export onnx; argosy help --man prints the manual page\n");
}

}  // namespace

std::vector<std::string> with_dashes(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    std::replace(argument.begin(),
                 argument.begin() + static_cast<ptrdiff_t>(std::min(argument.find('='), argument.size())), '_', '-');
  }
  return arguments;
}

/// "help export onnx" is "export onnx --help".
std::vector<std::string> with_help(std::vector<std::string> arguments) {
  if (arguments.empty()) return {"--help"};
  if (arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

std::optional<CommandLine> parse_command_line(std::vector<std::string> arguments, int& exit_code) {
  CommandLine result;
  InspectOptions inspect;
  ExplainOptions explain;
  OptOptions opt;
  ReplayOptions replay;
  CaptureOptions capture;
  CacheOptions cache;
  WeightsOptions weights;
  ExportOptions export_options;
  CheckOptions check_options;
  RunOptions run_options;
  PushOptions push;
  SweepOptions sweep;
  LintOptions lint;
  std::string shell;

  CLI::App app("Argosy exports Hugging Face Transformers models to the formats of inference engines.", "argosy");
  app.set_version_flag("--version", "argosy " + std::string(version()));
  app.require_subcommand(1);
  app.fallthrough();  // global flags may follow the subcommand
  add_global(app, result.global);
  add_export(app, export_options);
  add_capture(app, capture);
  add_weights(app, weights);
  add_explain(app, explain);
  add_inspect(app, inspect);
  add_run(app, run_options);
  add_check(app, check_options);
  add_lint(app, lint);
  add_push(app, push);
  add_sweep(app, sweep);
  add_cache(app, cache);
  add_doctor(app);
  add_opt(app, opt);
  add_replay(app, replay);
  add_json(app, result.global.json);
  add_serve(*app.get_subcommand("cache"), cache);
  add_completion(app, shell);
  group_by_topic(app);

  if (arguments == std::vector<std::string>{"help", "--man"}) {
    std::cout << man_page(app);
    exit_code = kDone;
    return std::nullopt;
  }
  arguments = with_dashes(with_help(std::move(arguments)));
  try {
    std::vector<std::string> reversed = arguments;
    std::reverse(reversed.begin(), reversed.end());  // CLI11 takes them from the back
    app.parse(std::move(reversed));
    if (app.got_subcommand("opt")) check(opt);
    if (app.got_subcommand("run")) check(*app.get_subcommand("run"), run_options);
    if (app.got_subcommand("lint")) check(lint);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints help, or the version
      exit_code = kDone;
    } else {
      GlobalOptions global;
      global.colours = wants_colours();
      Terminal(global).print_error(usage_error(app, error, arguments));
      exit_code = kUsage;
    }
    return std::nullopt;
  }
  if (app.got_subcommand("completion")) {
    std::cout << completion_script(app, shell);
    exit_code = kDone;
    return std::nullopt;
  }
  result.global.command = called(app);
  inspect.json = result.global.json;
  if (app.got_subcommand("inspect")) result.command = std::move(inspect);
  if (app.got_subcommand("explain")) result.command = std::move(explain);
  if (app.got_subcommand("opt")) result.command = std::move(opt);
  if (app.got_subcommand("replay")) result.command = std::move(replay);
  if (app.got_subcommand("capture")) result.command = std::move(capture);
  if (app.got_subcommand("cache")) result.command = std::move(cache);
  if (app.got_subcommand("weights")) result.command = std::move(weights);
  if (app.got_subcommand("export")) result.command = std::move(export_options);
  if (app.got_subcommand("check")) result.command = std::move(check_options);
  if (app.got_subcommand("run")) result.command = std::move(run_options);
  if (app.got_subcommand("push")) result.command = std::move(push);
  if (app.got_subcommand("sweep")) result.command = std::move(sweep);
  if (app.got_subcommand("lint")) result.command = std::move(lint);
  if (app.got_subcommand("doctor")) result.command = DoctorOptions{};
  return result;
}

}  // namespace argosy::cli
