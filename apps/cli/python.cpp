#include "python.h"

#include <unistd.h>

#include "base/text.h"
#include "extensions.h"
#include "frontends/capture/weight_plan.h"
#include "io/json.h"
#include "registry.h"
#include "stages.h"
#include "subprocess.h"

namespace argosy::cli {
namespace {

constexpr const char* kImportHint =
    "or bring one from another machine: argosy cache export there, argosy cache import here; or name a registry that "
    "has "
    "it: --registry";

Error no_python(const std::string& why, const Environment& environment) {
  return {ErrorCode::kNotFound,
          environment.python.empty()
              ? format("{}, and there is no Python to make one with", why)
              : format("ARGOSY_PYTHON is {}, which is no program", argosy::quoted(environment.python.native(), 1000)),
          format("install Python with argosy, torch and transformers, or name it by ARGOSY_PYTHON; {}", kImportHint)};
}

std::string_view module_of(CacheKind kind) {
  return kind == CacheKind::kCapture ? "argosy.capture" : "argosy.capture.weight_plan";
}

std::string_view words_for(CacheKind kind) { return kind == CacheKind::kCapture ? "capture" : "weight plan"; }

std::vector<std::string> arguments_of(const PythonWork& work, const std::filesystem::path& output) {
  std::vector<std::string> command = {"--model", work.request.model.string()};
  auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {flag, value});
  };
  add("--task", work.request.task);
  if (work.request.trust_remote_code) command.emplace_back("--trust-remote-code");
  if (work.kind == CacheKind::kWeightPlan) {
    add("--adapter", work.request.adapter.string());
    for (const auto& [name, folder] : work.request.adapters_apart)
      add("--adapter-apart", format("{}={}", name, folder.string()));
  }
  if (work.kind == CacheKind::kCapture) {
    add("--shape", work.request.shape);
    for (const auto& file : work.request.inputs) add("--inputs", file.string());
    if (work.request.prefill) command.emplace_back("--prefill");
    if (work.request.trace != CaptureRequest().trace) add("--trace", work.request.trace);
    add("--progress", "json");
  }
  add("--dtype", work.request.dtype);
  add("-o", output.string());
  return command;
}

/// What Python says of its progress, one JSON object a line.
struct ProgressLine {
  std::string stage;                      // empty: it is any other line
  std::vector<ComponentDims> components;  // those that will be traced, in one of the lines
};

ProgressLine progress_of(std::string_view line) {
  ProgressLine progress;
  auto document = line.starts_with('{') ? JsonDocument::parse(line, "progress")
                                        : Result<JsonDocument>(fail(ErrorCode::kInvalidInput, "no JSON"));
  if (!document) return progress;
  progress.stage = document->root().find("stage").as_string().value_or("");
  JsonView components = document->root().find("components");
  if (!components.is_object()) return progress;
  for (auto [name, dims] : components.members()) {
    ComponentDims& component = progress.components.emplace_back(std::string(name), std::vector<std::string>());
    for (JsonView dim : dims.items()) component.dims.emplace_back(dim.as_string().value_or(""));
  }
  return progress;
}

/// "Tracing LlamaForCausalLM (first time, about 30 s)"
std::string stage_of(const PythonWork& work, const std::string& model, const StageTimes& times) {
  const bool is_capture = work.kind == CacheKind::kCapture;
  return format("{} {}{}", is_capture ? "Tracing" : "Planning the weights of", model,
                in_brackets(work.renew ? "anew" : "first time", times.expected(words_for(work.kind), model)));
}

Status run(const PythonWork& work, const std::filesystem::path& output, const Environment& environment,
           Terminal& terminal) {
  std::string why = work.renew ? format("the {} is asked for anew", words_for(work.kind))
                               : format("the cache has no {} of this model", words_for(work.kind));
  if (candidate_pythons(environment).empty()) return fail(no_python(why, environment));
  const std::string model = model_in_words(work.request);
  const StageTimes times(environment.cache);
  terminal.begin_stage(stage_of(work, model, times));
  auto ended = run_module(std::string(module_of(work.kind)), arguments_of(work, output), why, environment, terminal,
                          work.check_components);
  if (!ended) return fail(std::move(ended.error()));
  if (ended->exit_code == 0) {
    times.remember(words_for(work.kind), model, terminal.end_stage());
    return {};
  }
  Error error = python_failure(*ended, format("no {} was made", words_for(work.kind)),
                               "the first export of an architecture needs torch and transformers",
                               ErrorCode::kInvalidInput, environment);
  if (!ended->missing_package().empty()) error.hint += format("; {}", kImportHint);
  return fail(std::move(error));
}

}  // namespace

std::vector<std::string> candidate_pythons(const Environment& environment) {
  if (!environment.python.empty()) {
    bool is_path = environment.python.native().find('/') != std::string::npos;
    auto found = is_path ? environment.python.string() : find_program(environment.python.string()).value_or("");
    if (access(found.c_str(), X_OK) == 0) return {found};
    return {};
  }
  std::vector<std::string> pythons;
  for (const auto& found :
       {find_beside("python"), find_beside("python3"), find_program("python"), find_program("python3")}) {
    if (found) pythons.push_back(*found);
  }
  return pythons;
}

CaptureRequest capture_request(const GraphOptions& options, const std::filesystem::path& folder,
                               const Environment& environment) {
  CaptureRequest request;
  request.model = folder;
  request.task = options.task;
  request.shape = options.shape;
  request.dtype = options.dtype;
  request.inputs.assign(options.inputs.begin(), options.inputs.end());
  request.trace = options.trace;
  request.prefill = options.prefill;
  request.trust_remote_code = options.source.trust_remote_code;
  request.extensions = installed_extensions(environment);
  return request;
}

Result<PythonWork> capture_work(const CaptureRequest& request) {
  PythonWork work;
  work.request = request;
  ARGOSY_TRY(work.key, capture_key(request));
  return work;
}

Result<PythonWork> weight_plan_work(const CaptureRequest& request, const Checkpoint& checkpoint) {
  PythonWork work;
  work.kind = CacheKind::kWeightPlan;
  work.request = for_weight_plan(request);
  ARGOSY_TRY(work.key, weight_plan_key(work.request, checkpoint));
  work.checkpoint_hash = headers_hash(checkpoint);
  return work;
}

Status add_adapter(const std::string& adapter, Checkpoint& checkpoint, CaptureRequest& request) {
  if (adapter.empty()) return {};
  request.adapter = adapter;
  ARGOSY_TRY(Checkpoint tensors, Checkpoint::open(request.adapter / "adapter_model.safetensors"));
  return checkpoint.add(tensors, "adapter:");
}

Status add_adapters_apart(const std::map<std::string, std::string>& adapters, Checkpoint& checkpoint,
                          CaptureRequest& request) {
  for (const auto& [name, folder] : adapters) {
    request.adapters_apart.emplace(name, folder);
    ARGOSY_TRY(Checkpoint tensors, Checkpoint::open(std::filesystem::path(folder) / "adapter_model.safetensors"));
    ARGOSY_TRY_STATUS(checkpoint.add(tensors, format("adapter:{}:", name)));
  }
  return {};
}

Result<PythonEnd> run_module(const std::string& module, const std::vector<std::string>& arguments,
                             const std::string& why, const Environment& environment, Terminal& terminal,
                             const ComponentHook& check_components) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) return fail(no_python(why, environment));
  PythonEnd end{pythons[0], module, 0, {}};
  terminal.log(LogLevel::kDebug, format("{}; starting {} -m {}", why, end.python, module));
  std::vector<std::string> command = {end.python, "-m", module};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Status allowed;
  auto take = [&](std::string_view line) {
    if (ProgressLine progress = progress_of(line); !progress.stage.empty()) {
      terminal.progress_line(line);
      terminal.log(LogLevel::kInfo, progress.stage);
      terminal.stage_detail(progress.stage);
      if (allowed && check_components && !progress.components.empty()) allowed = check_components(progress.components);
      return;
    }
    terminal.log(LogLevel::kDebug, line);
    end.take(line);
  };
  auto exit_code = run_lines(command, take, [&] { return !allowed.has_value(); }, [&] { terminal.tick(); });
  if (!allowed) return fail(std::move(allowed.error()));
  if (!exit_code) {
    return fail(ErrorCode::kIo, format("{} cannot be started", end.python),
                "check that it is a Python interpreter; ARGOSY_PYTHON names another");
  }
  end.exit_code = *exit_code;
  return end;
}

Result<Obtained> obtain_by_python(const PythonWork& work, const Environment& environment, Terminal& terminal) {
  CacheWork cache_work;
  cache_work.kind = work.kind;
  cache_work.key = work.key;
  cache_work.name = model_name(work.request.model);
  cache_work.renew = work.renew;
  cache_work.make = [&](const std::filesystem::path& output) { return run(work, output, environment, terminal); };
  cache_work.on_wait = [&] {
    terminal.print_error(format("argosy: another process makes the same {}; waiting for it\n", words_for(work.kind)));
  };
  cache_work.on_damaged = [&](const std::filesystem::path& path) {
    terminal.log(LogLevel::kWarn, format("{} is damaged and not used; argosy cache prune removes it", path.string()));
  };
  auto fits = [&](const std::filesystem::path& path) -> Status {
    if (work.kind == CacheKind::kCapture) return check_configuration(path, work.request.model);
    ARGOSY_TRY(WeightPlan plan, WeightPlan::read(path));
    if (plan.checkpoint_hash() == work.checkpoint_hash) return {};
    return fail(ErrorCode::kCorruptFile, "the weight plan is for tensors of other names or shapes");
  };
  ask_registry(cache_work, fits, environment, terminal);
  return obtain(CaptureCache(environment.cache), cache_work);
}

}  // namespace argosy::cli
