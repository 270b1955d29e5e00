#include "check.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "base/system.h"
#include "base/text.h"
#include "cache/check_report.h"
#include "commands.h"
#include "frontends/capture/weight_plan.h"
#include "io/file.h"
#include "model_source.h"
#include "python.h"
#include "registry.h"
#include "stages.h"
#include "subprocess.h"
#include "table.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckModule = "argosy.check";
constexpr std::string_view kPlainEngine = "plain";
constexpr size_t kShownWrong = 8;
constexpr uint64_t kMaxSettings = uint64_t{16} << 20;

void add(std::vector<std::string>& arguments, const char* flag, const std::string& value) {
  if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
}

template <class Adapters>
void add_adapters(std::vector<std::string>& arguments, const Adapters& adapters) {
  for (const auto& [name, folder] : adapters)
    add(arguments, "--adapter-apart", format("{}={}", name, fs::path(folder).string()));
}

template <class Files>
void add_inputs(std::vector<std::string>& arguments, const Files& files) {
  for (const auto& file : files) add(arguments, "--inputs", fs::path(file).string());
}

/// What a twin's adapters are made after.
Result<std::string> adapters_text(const CaptureRequest& request) {
  std::string text;
  for (const auto& [name, folder] : request.adapters_apart) {
    ARGOSY_TRY(Checkpoint tensors, Checkpoint::open(folder / "adapter_model.safetensors"));
    ARGOSY_TRY(std::string settings, read_text_file(folder / "adapter_config.json", kMaxSettings));
    text += format("\n{} {} {}\n{}", name, headers_hash(tensors), settings.size(), settings);
  }
  return text;
}

/// What is wrong, a line for each call.
void print_wrong(const CheckReport& report, Terminal& terminal) {
  terminal.print_error(format("argosy: {} in {} is wrong in {} of {}:\n", report.model_class, report.engine,
                              report.wrong.size(), count_of(report.calls, "call")));
  for (size_t i = 0; i < report.wrong.size() && i < kShownWrong; ++i)
    terminal.print_error(format("  {}\n", report.wrong[i]));
  if (report.wrong.size() > kShownWrong)
    terminal.print_error(format("  and {} more\n", report.wrong.size() - kShownWrong));
}

/// Runs the module, which writes its report to `output`. kNotRun: no Python, or it could not do it.
CheckOutcome run_module_check(std::vector<std::string> arguments, const fs::path& output, const std::string& why,
                              const Environment& environment, Terminal& terminal) {
  arguments.insert(arguments.end(), {"--progress", "json", "-o", output.string()});
  if (candidate_pythons(environment).empty())
    return {CheckOutcome::Kind::kNotRun, "there is no Python to check with", ""};
  auto ended = run_module(kCheckModule, arguments, why, environment, terminal);
  if (!ended) {
    terminal.print_error(ended.error());
    return {CheckOutcome::Kind::kNotRun, "Python cannot be started", ""};
  }
  if (ended->exit_code != kDone && ended->exit_code != kWrong) {
    if (std::string missing = ended->missing_package(); !missing.empty())
      return {CheckOutcome::Kind::kNotRun, format("Python has no {}: {}", missing, how_to_install(missing)), ""};
    CheckOutcome failed{CheckOutcome::Kind::kFailed, ended->last_words(), ""};
    failed.hint = keep_log(*ended, environment) + "; ";
    return failed;
  }
  auto report = CheckReport::read(output);
  if (!report) {
    terminal.print_error(report.error());
    return {CheckOutcome::Kind::kFailed, "the check's result cannot be read", ""};
  }
  if (ended->exit_code == kDone && !report->unchecked.empty())
    return {CheckOutcome::Kind::kNotRun, report->unchecked, ""};
  if (ended->exit_code == kDone && report->ok) {
    terminal.log(LogLevel::kInfo, format("checked {} in {}: {}, differences up to {:.1e}", report->model_class,
                                         report->engine, count_of(report->calls, "call"), report->largest));
    return {CheckOutcome::Kind::kRight, "",
            report->engine_missing,     report->summary,
            report->agreement,          report->divergence,
            report->least_cosine,       report->quality};
  }
  terminal.end_stage("it differs");
  print_wrong(*report, terminal);
  return {CheckOutcome::Kind::kWrong, "", ""};
}

/// A file for the report, gone at the end.
struct ReportFile {
  ReportFile() {
    std::error_code failure;
    fs::path folder = fs::temp_directory_path(failure);
    // TMPDIR may name no folder; POSIX has this one.
    std::string name = ((failure ? fs::path("/tmp") : folder) / "argosy-check-XXXXXX").string();
    if (int descriptor = ::mkstemp(name.data()); descriptor >= 0) ::close(descriptor);
    path = name;
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  fs::path path;
};

}  // namespace

CheckOutcome check_twin(const CaptureRequest& request, const fs::path& capture, const Backend& backend,
                        const BackendOptions& options, const Environment& environment, Terminal& terminal) {
  CheckOutcome outcome;
  std::string engine = backend.name == "onnx" && options.onnx.engine != kPlainEngine ? options.onnx.engine : "";
  auto adapters = adapters_text(request);
  if (!adapters) return {CheckOutcome::Kind::kNotRun, "an adapter cannot be read", ""};
  auto key = twin_check_key(capture, backend.name,
                            join(backend.graph_arguments(options), " ") + engine + *adapters + request.extensions);
  if (!key) return {CheckOutcome::Kind::kNotRun, "the capture cannot be read", ""};
  std::vector<std::string> arguments = {"--twin", request.model.string()};
  add(arguments, "--engine", std::string(backend.name));
  for (const std::string& each : backend.graph_arguments(options)) arguments.push_back("--option=" + each);
  add(arguments, "--for", engine);
  add_adapters(arguments, request.adapters_apart);
  add(arguments, "--program", system::own_program());
  add(arguments, "--task", request.task);
  add(arguments, "--shape", request.shape);
  add_inputs(arguments, request.inputs);
  add(arguments, "--dtype", request.dtype);
  if (request.prefill) arguments.emplace_back("--prefill");
  if (request.trust_remote_code) arguments.emplace_back("--trust-remote-code");
  CacheWork work;
  work.kind = CacheKind::kCheck;
  work.key = *key;
  work.name = model_name(request.model);
  work.make = [&](const fs::path& output) -> Status {
    outcome = run_module_check(arguments, output, format("no check of this capture for {} is remembered", backend.name),
                               environment, terminal);
    if (outcome.kind == CheckOutcome::Kind::kRight && outcome.engine_missing.empty()) return {};
    return fail(ErrorCode::kInvalidInput, "not checked");
  };
  work.on_wait = [&] { terminal.print_error("argosy: another process checks the same; waiting for it\n"); };
  work.on_damaged = [&](const fs::path& path) {
    terminal.log(LogLevel::kWarn, format("{} is damaged and not used; argosy cache prune removes it", path.string()));
  };
  auto fits = [&](const fs::path& path) -> Status {
    ARGOSY_TRY(CheckReport report, CheckReport::read(path));
    if (report.engine == backend.name) return {};
    return fail(ErrorCode::kCorruptFile, format("the check is one of {}", argosy::quoted(report.engine)));
  };
  ask_registry(work, fits, environment, terminal);
  const StageTimes times(environment.cache);
  const std::string kind = format("check {}", backend.name), model = model_in_words(request);
  auto passed = CaptureCache(environment.cache).find(work.kind, work.key);
  const bool takes_time = !passed || !passed->has_value();
  terminal.begin_stage(format("Verifying against PyTorch on a small random-weight copy{}",
                              in_brackets("", takes_time ? times.expected(kind, model) : "")));
  auto obtained = obtain(CaptureCache(environment.cache), work);
  if (outcome.kind != CheckOutcome::Kind::kFailed) {
    const bool was_run = outcome.kind != CheckOutcome::Kind::kNotRun;
    const double seconds = terminal.end_stage(was_run                             ? ""
                                              : obtained && obtained->was_fetched ? "it passed elsewhere"
                                              : obtained                          ? "it passed before"
                                                                                  : "not done");
    if (outcome.kind == CheckOutcome::Kind::kRight) times.remember(kind, model, seconds);
  }
  if (obtained) {
    auto remembered = CheckReport::read(obtained->entry.path);
    return {CheckOutcome::Kind::kRight, "", "", remembered ? remembered->summary : ""};
  }
  // A check that passed counts even if the cache cannot keep it.
  if (!outcome.engine_missing.empty())
    terminal.log(LogLevel::kWarn, format("checked in ONNX Runtime alone: {}", outcome.engine_missing));
  if (outcome.kind == CheckOutcome::Kind::kRight || !outcome.why.empty()) return outcome;
  if (outcome.kind != CheckOutcome::Kind::kWrong) {
    terminal.print_error(obtained.error());
    outcome.why = "the cache cannot be used";
  }
  return outcome;
}

CheckOutcome check_written(const fs::path& written, const std::string& variant, const CaptureRequest& request,
                           std::string_view backend, const CheckedOn& given, const Environment& environment,
                           Terminal& terminal) {
  ReportFile report;
  std::vector<std::string> arguments = {written.string()};
  add(arguments, "--variant", variant);
  add(arguments, "--against", request.model.string());
  add(arguments, "--engine", std::string(backend));
  add(arguments, "--text", given.text);
  add(arguments, "--audio", given.audio);
  add_inputs(arguments, request.inputs);
  add_adapters(arguments, request.adapters_apart);
  if (request.trust_remote_code) arguments.emplace_back("--trust-remote-code");
  terminal.begin_stage("Verifying against PyTorch with the model's own weights");
  CheckOutcome outcome =
      run_module_check(arguments, report.path, "comparing with the model's own weights", environment, terminal);
  if (outcome.kind == CheckOutcome::Kind::kRight) terminal.end_stage();
  return outcome;
}

int run_check(const CheckOptions& options, const Environment& environment, const GlobalOptions& global,
              Terminal& terminal) {
  auto model = obtain_model(options.source, ModelParts::kWeights, environment, terminal);
  if (!model) {
    terminal.print_error(model.error());
    return kFailed;
  }
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) {
    terminal.print_error(Error{ErrorCode::kNotFound, "there is no Python to check with",
                               "install Python with argosy, torch and transformers, or name it by ARGOSY_PYTHON"});
    return kFailed;
  }
  std::vector<std::string> command = {pythons[0], "-m", kCheckModule, options.bundle, "--against", model->string()};
  add(command, "--calls", options.calls);
  add(command, "--text", options.given.text);
  add(command, "--audio", options.given.audio);
  add_inputs(command, options.inputs);
  add(command, "--variant", options.variant);
  add_adapters(command, options.adapters_apart);
  if (options.tokens > 0) add(command, "--tokens", format("{}", options.tokens));
  if (terminal.wants_json()) command.emplace_back("--json");
  if (options.source.trust_remote_code) command.emplace_back("--trust-remote-code");
  add(command, "--progress",
      global.progress == ProgressMode::kJson  ? "json"
      : global.progress == ProgressMode::kOff ? "off"
                                              : "text");
  if (auto exit_code = run_through(command)) {
    terminal.summary().leave();
    return *exit_code;
  }
  terminal.print_error(Error{ErrorCode::kIo, format("{} cannot be started", pythons[0]),
                             "check that it is a Python interpreter; ARGOSY_PYTHON names another"});
  return kFailed;
}

}  // namespace argosy::cli
