#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "check.h"
#include "commands.h"
#include "driver/backends.h"
#include "driver/dim_limits.h"
#include "driver/disk_space.h"
#include "driver/export_hooks.h"
#include "driver/process_memory.h"
#include "driver/validate_export.h"
#include "model_source.h"
#include "python.h"
#include "table.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxThreads = 4;
constexpr size_t kShownFixedDims = 4;
constexpr uint64_t kUsualScratch = uint64_t{64} << 20, kLeastScratch = uint64_t{4} << 20;

/// The model's files, as far as they are there; what is missing is made by Python.
struct Inputs {
  CaptureRequest request;
  Checkpoint checkpoint;
  PythonWork capture_work, plan_work;
};

Result<Inputs> find_inputs(const ExportOptions& options, const Backend& backend, const Environment& environment,
                           Terminal& terminal) {
  Inputs inputs;
  ARGOSY_TRY(fs::path model, obtain_model(options.source, ModelParts::kWeights, environment, terminal));
  inputs.request = capture_request(options, model);
  // A capture that is named has the dtype that it has.
  if (options.capture.empty()) {
    ARGOSY_TRY(inputs.request.dtype, export_dtype(backend, model, options.dtype));
    if (inputs.request.dtype != options.dtype) {
      terminal.log(LogLevel::kInfo, format("the configuration asks for bfloat16, which {} engines lack: exporting {}",
                                           backend.name, inputs.request.dtype));
    }
  }
  if (!options.adapter.empty() && options.check == CheckMode::kFull) {
    return fail(ErrorCode::kUnsupportedFeature, "--check full compares with the model alone, without its adapter",
                "leave out --check full, or merge the adapter with PEFT and export the merged model");
  }
  ARGOSY_TRY(inputs.checkpoint, Checkpoint::open(model));
  ARGOSY_TRY_STATUS(add_adapter(options.adapter, inputs.checkpoint, inputs.request));
  ARGOSY_TRY(inputs.capture_work, capture_work(inputs.request));
  ARGOSY_TRY(inputs.plan_work, weight_plan_work(inputs.request, inputs.checkpoint));
  inputs.capture_work.renew = inputs.plan_work.renew = options.recapture;
  return inputs;
}

/// A file that the user names, else the cache's; made if it has none.
Result<fs::path> obtain_file(const std::string& named, const PythonWork& work, const Environment& environment,
                             Terminal& terminal) {
  if (!named.empty()) return fs::path(named);
  ARGOSY_TRY(Obtained obtained, obtain_by_python(work, environment, terminal));
  return obtained.entry.path;
}

/// What the user asked for, for the bundle; the backend knows its own options.
std::vector<std::string> options_of_graphs(const ExportOptions& options, const Inputs& inputs) {
  std::vector<std::string> asked;
  if (!options.task.empty()) asked.push_back(format("--task={}", options.task));
  if (!options.shape.empty()) asked.push_back(format("--shape={}", options.shape));
  if (options.prefill) asked.emplace_back("--prefill");
  if (inputs.request.dtype != "auto") asked.push_back(format("--dtype={}", inputs.request.dtype));
  return asked;
}

/// Where the check ran, if the export is for something else.
std::string place_of_check(const ExportOptions& options, const Backend& backend) {
  const std::string& device = options.backend_options.onnx.device;
  return backend.name == "onnx" && device != "cpu" ? format(" (on the CPU, not on {})", device) : "";
}

/// What the export says of its check. One on a twin is done now; nullopt: it did not pass. An error: it could not be
/// carried through, though everything that it needs is there.
Result<std::optional<ExportCheck>> check_before_writing(const ExportOptions& options, const Backend& backend,
                                                        const Inputs& inputs, const fs::path& capture,
                                                        const Environment& environment, Terminal& terminal) {
  if (options.check == CheckMode::kOff) return ExportCheck{"off", "not asked for", ""};
  if (options.check == CheckMode::kFull) {  // or there will be no export
    return ExportCheck{"full", "",
                       "this model with its own weights agrees with PyTorch" + place_of_check(options, backend)};
  }
  CheckOutcome outcome = check_twin(inputs.request, capture, backend, options.backend_options, environment, terminal);
  switch (outcome.kind) {
    case CheckOutcome::Kind::kWrong: return std::nullopt;
    case CheckOutcome::Kind::kRight:
      return ExportCheck{"twin", "", outcome.compared + place_of_check(options, backend)};
    case CheckOutcome::Kind::kFailed:
      return fail(ErrorCode::kInternal, format("the export could not be checked: {}", outcome.why),
                  "its last lines are above; --check off exports the model unchecked");
    case CheckOutcome::Kind::kNotRun: break;
  }
  terminal.log(LogLevel::kWarn, format("the export is not checked: {}", outcome.why));
  return ExportCheck{"none", outcome.why, ""};
}

/// The check on the model's own weights, of what is written but not there yet. `outcome` tells how it ended.
Status check_before_commit(const fs::path& written, const ExportOptions& options, const Backend& backend,
                           const Inputs& inputs, const Environment& environment, Terminal& terminal,
                           CheckOutcome& outcome) {
  outcome = check_written(written, inputs.request, backend.name, options.text, environment, terminal);
  if (outcome.kind == CheckOutcome::Kind::kRight) return {};
  return fail(ErrorCode::kInvalidInput, format("not checked: {}", outcome.why),
              "--check twin or off exports without it");
}

/// What is left for weights on their way, given what the process has taken so far.
Result<size_t> scratch_bytes(uint64_t memory_bytes) {
  if (memory_bytes == 0) return kUsualScratch;
  uint64_t taken = peak_rss_bytes();
  if (memory_bytes < taken + kLeastScratch) {
    return fail(ErrorCode::kInvalidInput,
                format("--memory {} is not enough: the graphs have taken {} by now", format_bytes(memory_bytes),
                       format_bytes(taken)),
                format("give at least {}", format_bytes(taken + kLeastScratch)));
  }
  return std::min(kUsualScratch, memory_bytes - taken);
}

int thread_count(int wanted) {
  if (wanted > 0) return wanted;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

std::string components_text(const Export& prepared) {
  std::vector<std::string> names;
  for (const ExportFile& file : prepared.files()) {
    names.insert(names.end(), file.components.begin(), file.components.end());
  }
  return format("{} ({})", count_of(names.size(), "component"), join(names, ", "));
}

std::string linked_text(const Export& prepared) {
  uint64_t bytes = 0;
  for (const ExportFile& file : prepared.files()) bytes += file.linked_bytes;
  return bytes == 0 ? "" : format("{} linked, ", format_bytes(bytes));
}

/// A program that takes one size only is right and still not what most users want.
void warn_of_fixed_dims(const Export& prepared, Terminal& terminal) {
  const std::vector<std::string>& fixed = prepared.fixed_dims();
  for (size_t i = 0; i < fixed.size() && i < kShownFixedDims; ++i) terminal.log(LogLevel::kWarn, fixed[i]);
  if (fixed.size() > kShownFixedDims)
    terminal.log(LogLevel::kWarn, format("and {} more dims are fixed", fixed.size() - kShownFixedDims));
}

Result<std::string> state_in_cache(const std::string& named, const PythonWork& work, const Environment& environment) {
  if (!named.empty()) return named;
  if (work.renew) return "to be made anew by Python";
  ARGOSY_TRY(auto entry, CaptureCache(environment.cache).find(work.kind, work.key));
  return entry ? "in the cache" : "not in the cache, to be made by Python";
}

/// What an export would do. Exact if capture and plan are at hand, else by the checkpoint alone.
Status dry_run(const ExportOptions& options, const Backend& backend, const Inputs& inputs,
               const ExportDestination& destination, const Environment& environment, Diagnostics& diagnostics,
               Terminal& terminal) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  ARGOSY_TRY(std::string capture, state_in_cache(options.capture, inputs.capture_work, environment));
  ARGOSY_TRY(std::string plan, state_in_cache(options.plan, inputs.plan_work, environment));
  Table table("ll", 0);
  table.add({"model", inputs.request.model.string()});
  table.add({"checkpoint", format("{} in {}, {}", count_of(inputs.checkpoint.tensors().size(), "tensor"),
                                  count_of(inputs.checkpoint.files().size(), "file"),
                                  format_bytes(inputs.checkpoint.total_bytes()))});
  table.add({"capture", capture});
  table.add({"weight plan", plan});
  bool is_exact =
      (!options.capture.empty() || capture == "in the cache") && (!options.plan.empty() || plan == "in the cache");
  std::string output = destination.path.string();
  if (is_exact) {
    ARGOSY_TRY(fs::path capture_file, obtain_file(options.capture, inputs.capture_work, environment, terminal));
    ARGOSY_TRY(fs::path plan_file, obtain_file(options.plan, inputs.plan_work, environment, terminal));
    ARGOSY_TRY(WeightPlan weight_plan, WeightPlan::read(plan_file));
    ARGOSY_TRY(std::unique_ptr<Export> prepared,
               backend.prepare({capture_file, &weight_plan, &inputs.checkpoint, inputs.request.model,
                                options_of_graphs(options, inputs)},
                               destination, options.backend_options, diagnostics));
    ARGOSY_TRY(size_t scratch, scratch_bytes(options.memory_bytes));
    for (const ExportFile& file : prepared->files()) {
      fs::path path = destination.is_folder ? destination.path / file.file : destination.path.parent_path() / file.file;
      std::string what = file.components.empty() ? std::string("weights") : join(file.components, ", ");
      if (file.linked_bytes != 0)
        table.add({"would link", format("{}, {} of it, {}", path.string(), format_bytes(file.linked_bytes), what)});
      else
        table.add({"would write", format("{}, {}, {}", path.string(), format_bytes(file.bytes), what)});
    }
    table.add({"peak memory", format("at most {}", format_bytes(peak_rss_bytes() + scratch))});
  } else {
    table.add({"would write", format("{}{}, about {}", output, destination.is_folder ? "/" : "",
                                     format_bytes(inputs.checkpoint.total_bytes()))});
    table.add({"peak memory", "not known before the capture is made"});
  }
  if (auto space = disk_space_for(destination.path))
    table.add({"free disk", format("{} in {}", format_bytes(space->free_bytes), space->folder.string())});
  if (terminal.print(table.text())) return {};
  return fail(ErrorCode::kIo, "cannot write to stdout", "check where it leads to");
}

Result<ExitCode> export_model(const ExportOptions& options, const Backend& backend, const Environment& environment,
                              Terminal& terminal, Diagnostics& diagnostics) {
  ExportDestination destination = export_destination(options.output, options.source.model, backend.suffix);
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  if (options.dry_run) {
    ARGOSY_TRY(std::string missing, missing_parts(options.source, ModelParts::kWeights, environment));
    if (!missing.empty()) {
      terminal.print(format("the Hub's cache lacks {}, which would be downloaded first\n", missing));
      return kDone;
    }
  }
  ARGOSY_TRY(Inputs inputs, find_inputs(options, backend, environment, terminal));
  ExportRequest request{&backend,           &options.backend_options, &destination,
                        &inputs.checkpoint, inputs.request.model,     inputs.request.dtype,
                        options.shape,      options.prefill,          options.capture};
  ARGOSY_TRY_STATUS(validate_export(request, diagnostics.notes));
  ARGOSY_TRY([[maybe_unused]] size_t least, scratch_bytes(options.memory_bytes));
  inputs.capture_work.check_components = [request](std::span<const ComponentDims> components) {
    return validate_components(request, components);
  };
  if (options.dry_run) {
    ARGOSY_TRY_STATUS(dry_run(options, backend, inputs, destination, environment, diagnostics, terminal));
    return kDone;
  }
  ARGOSY_TRY(fs::path capture, obtain_file(options.capture, inputs.capture_work, environment, terminal));
  ARGOSY_TRY(fs::path plan_file, obtain_file(options.plan, inputs.plan_work, environment, terminal));
  ARGOSY_TRY(WeightPlan plan, WeightPlan::read(plan_file));
  ARGOSY_TRY(
      std::unique_ptr<Export> prepared,
      backend.prepare({capture, &plan, &inputs.checkpoint, inputs.request.model, options_of_graphs(options, inputs)},
                      destination, options.backend_options, diagnostics));
  warn_of_fixed_dims(*prepared, terminal);
  for (const std::string& note : diagnostics.notes) terminal.log(LogLevel::kWarn, note);
  ARGOSY_TRY(std::optional<ExportCheck> check,
             check_before_writing(options, backend, inputs, capture, environment, terminal));
  if (!check) {
    terminal.print_error(
        format("argosy: nothing is written to {}; --check off exports it anyway\n", destination.path.string()));
    return kWrong;
  }
  ExportWriteOptions write;
  ARGOSY_TRY(write.scratch_bytes, scratch_bytes(options.memory_bytes));
  write.threads = thread_count(options.threads);
  write.check = *check;
  write.progress = terminal.progress_hook();
  write.on_warning = [&](const std::string& text) { terminal.log(LogLevel::kWarn, text); };
  auto start = std::chrono::steady_clock::now();
  CheckOutcome full;
  if (options.check == CheckMode::kFull) {
    write.before_commit = [&](const fs::path& written) {
      return check_before_commit(written, options, backend, inputs, environment, terminal, full);
    };
  }
  Status written = prepared->write(write);
  if (!written && full.kind == CheckOutcome::Kind::kWrong) {
    terminal.print_error(
        format("error[wrong-results]: the export differs from the model in the calls above; nothing is written to {}\n"
               "  hint: please report it with these lines; --check off exports it anyway\n",
               destination.path.string()));
    return kWrong;
  }
  ARGOSY_TRY_STATUS(std::move(written));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  terminal.print_error(
      format("argosy: {}: {}, {}, {} written in {:.1f} s ({}/s), {}peak memory {}\n", destination.path.string(),
             prepared->model_class(), components_text(*prepared), format_bytes(prepared->total_bytes()), seconds,
             format_bytes(static_cast<uint64_t>(static_cast<double>(prepared->total_bytes()) / seconds)),
             linked_text(*prepared), format_bytes(peak_rss_bytes())));
  for (const std::string& line : prepared->summary()) terminal.print_error(format("argosy: {}\n", line));
  for (const std::string& line : prepared->limits()) terminal.print_error(format("argosy: {}\n", line));
  terminal.print_error(format("argosy: check: {}\n", full.compared.empty() ? check->text() : full.compared));
  return kDone;
}

}  // namespace

int run_export(ExportOptions options, const Environment& environment, Terminal& terminal) {
  Diagnostics diagnostics;
  const Backend* backend = find_backend(options.backend);
  ARGOSY_CHECK(backend != nullptr, "the command line knows a backend that is none: " + options.backend);
  if (backend->bounds_dims)
    options.backend_options.executorch.shape = std::exchange(options.shape, ranges_above_one(options.shape));
  if (options.watch.repro_dir.empty()) {
    options.watch.repro_dir =
        std::filesystem::path(options.output.empty() ? "argosy" : options.output).concat(".repro");
    options.watch.only_bugs = true;
  }
  Watch watch(options.watch);
  ExportHooks hooks;
  if (options.backend_options.onnx.hooks != nullptr) hooks = *options.backend_options.onnx.hooks;
  hooks.watch = &watch;
  options.backend_options.set_hooks(&hooks);
  Result<ExitCode> code = export_model(options, *backend, environment, terminal, diagnostics);
  if (code) return *code;
  terminal.print_error(code.error());
  if (std::string text = watch.failure_text(); !text.empty()) terminal.print_error(format("  {}\n", text));
  terminal.print_further(diagnostics, code.error());
  return kFailed;
}

}  // namespace argosy::cli
