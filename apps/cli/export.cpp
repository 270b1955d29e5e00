#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/system.h"
#include "base/text.h"
#include "check.h"
#include "commands.h"
#include "driver/backends.h"
#include "driver/dim_limits.h"
#include "driver/disk_space.h"
#include "driver/export_hooks.h"
#include "driver/validate_export.h"
#include "export_jobs.h"
#include "export_summary.h"
#include "model_source.h"
#include "own_engines.h"
#include "quality_limits.h"
#include "see_values.h"
#include "table.h"
#include "weight_schemes.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kMaxThreads = 4;
constexpr size_t kShownFixedDims = 4;
constexpr std::string_view kInCache = "in the cache";
constexpr uint64_t kUsualScratch = uint64_t{64} << 20, kLeastScratch = uint64_t{4} << 20;

/// Where the check ran, if the export is for something else.
std::string place_of_check(const ExportJob& job, const Backend& backend) {
  const std::string& device = job.options.backend_options.onnx.device;
  return backend.name == "onnx" && device != "cpu" ? format(" (on the CPU, not on {})", device) : "";
}

/// What the export says of its check. One on a twin is done now; nullopt: it did not pass. An error: it could not be
/// carried through, though everything that it needs is there.
Result<std::optional<ExportCheck>> check_before_writing(const ExportJob& job, const Backend& backend,
                                                        const Environment& environment, Terminal& terminal) {
  const ExportOptions& options = job.options;
  if (options.check == CheckMode::kOff) return ExportCheck{"off", "not asked for", ""};
  if (options.check == CheckMode::kFull) {  // or there will be no export
    return ExportCheck{"full", "",
                       "this model with its own weights agrees with PyTorch" + place_of_check(job, backend)};
  }
  CheckOutcome outcome = check_twin(job.request, job.capture, backend, options.backend_options, environment, terminal);
  switch (outcome.kind) {
    case CheckOutcome::Kind::kWrong: return std::nullopt;
    case CheckOutcome::Kind::kRight: return ExportCheck{"twin", "", outcome.compared + place_of_check(job, backend)};
    case CheckOutcome::Kind::kFailed:
      return fail(ErrorCode::kInternal, format("the export could not be checked: {}", outcome.why),
                  outcome.hint + "--check off exports the model unchecked");
    case CheckOutcome::Kind::kNotRun: break;
  }
  terminal.log(LogLevel::kWarn, format("the export is not checked: {}", outcome.why));
  return ExportCheck{"none", outcome.why, ""};
}

/// The check on the model's own weights, of what is written but not there yet. `outcome` tells how it ended.
Result<ExportCheck> check_before_commit(const fs::path& written, const ExportJob& job, const Backend& backend,
                                        const Environment& environment, Terminal& terminal, CheckOutcome& outcome) {
  outcome = check_written(written, job.variant, job.request, backend.name, job.options.given, environment, terminal);
  if (outcome.kind != CheckOutcome::Kind::kRight) {
    return fail(ErrorCode::kInvalidInput, format("not checked: {}", outcome.why),
                outcome.hint + "--check twin or off exports without it");
  }
  ARGOSY_TRY_STATUS(check_quality(outcome, job, backend));
  return ExportCheck{"full", "", outcome.compared + place_of_check(job, backend), outcome.quality};
}

/// What is left for weights on their way, given what the process has taken so far.
Result<size_t> scratch_bytes(uint64_t memory_bytes) {
  if (memory_bytes == 0) return kUsualScratch;
  uint64_t taken = system::peak_rss_bytes();
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
  if (entry) return std::string(kInCache);
  return environment.registry.location.empty() ? "not in the cache, to be made by Python"
                                               : "not in the cache, to be asked of the registry or made by Python";
}

/// Whether captures and plans are at hand; rows of the table say so.
Result<bool> add_states(Table& table, const ExportJobs& jobs, const Environment& environment) {
  bool are_there = true;
  for (const auto& job : jobs) {
    const std::string of = job->variant.empty() ? "" : format(" of {}", job->variant);
    ARGOSY_TRY(std::string capture, state_in_cache(job->options.capture, job->capture_work, environment));
    ARGOSY_TRY(std::string plan, state_in_cache(job->options.plan, job->plan_work, environment));
    table.add({"capture" + of, capture});
    table.add({"weight plan" + of, plan});
    are_there = are_there && (!job->options.capture.empty() || capture == kInCache) &&
                (!job->options.plan.empty() || plan == kInCache);
  }
  return are_there;
}

/// What an export would do. Exact if captures and plans are at hand, else by the checkpoint alone.
Status dry_run(const ExportOptions& options, const Backend& backend, const ExportJobs& jobs,
               const ExportDestination& destination, const Environment& environment, Diagnostics& diagnostics,
               Terminal& terminal) {
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  const Checkpoint& checkpoint = jobs[0]->checkpoint;
  JsonWriter& writer = terminal.summary().members();
  writer.key("dry_run").value(true).key("output").value(destination.path.string());
  writer.key("model").value(jobs[0]->request.model.string()).key("checkpoint_bytes").value(checkpoint.total_bytes());
  Table table("ll", 0);
  table.add({"model", jobs[0]->request.model.string()});
  table.add(
      {"checkpoint", format("{} in {}, {}", count_of(checkpoint.tensors().size(), "tensor"),
                            count_of(checkpoint.files().size(), "file"), format_bytes(checkpoint.total_bytes()))});
  ARGOSY_TRY(bool is_exact, add_states(table, jobs, environment));
  std::string output = destination.path.string();
  writer.key("is_exact").value(is_exact);
  if (is_exact) {
    ARGOSY_TRY_STATUS(obtain_captures(jobs, environment, terminal));
    ARGOSY_TRY(std::unique_ptr<Export> prepared, prepare(jobs, backend, destination, diagnostics));
    ARGOSY_TRY(size_t scratch, scratch_bytes(options.memory_bytes));
    for (const ExportFile& file : prepared->files()) {
      fs::path path = destination.is_folder ? destination.path / file.file : destination.path.parent_path() / file.file;
      std::string what = file.components.empty() ? std::string("weights") : join(file.components, ", ");
      if (file.linked_bytes != 0)
        table.add({"would link", format("{}, {} of it, {}", path.string(), format_bytes(file.linked_bytes), what)});
      else
        table.add({"would write", format("{}, {}, {}", path.string(), format_bytes(file.bytes), what)});
    }
    table.add({"peak memory", format("at most {}", format_bytes(system::peak_rss_bytes() + scratch))});
    write_files(*prepared, writer);
    writer.key("peak_memory_bytes").value(system::peak_rss_bytes() + scratch);
  } else {
    table.add({"would write", format("{}{}, about {}", output, destination.is_folder ? "/" : "",
                                     format_bytes(checkpoint.total_bytes()))});
    table.add({"peak memory", "not known before the capture is made"});
  }
  if (auto space = disk_space_for(destination.path)) {
    table.add({"free disk", format("{} in {}", format_bytes(space->free_bytes), space->folder.string())});
    writer.key("free_disk_bytes").value(space->free_bytes);
  }
  if (terminal.wants_json() || terminal.print(table.text())) return {};
  return fail(ErrorCode::kIo, "cannot write to stdout", "check where it leads to");
}

/// Refuses what can be refused before work that takes time.
Status validate(const ExportJobs& jobs, const Backend& backend, const ExportDestination& destination,
                Diagnostics& diagnostics) {
  for (const auto& job : jobs) {
    const ExportOptions& options = job->options;
    ExportRequest request{&backend,         &options.backend_options, &destination,
                          &job->checkpoint, job->request.model,       job->request.dtype,
                          options.shape,    options.prefill,          options.capture,
                          jobs.size()};
    ARGOSY_TRY_STATUS(validate_export(request, diagnostics.notes));
    ARGOSY_TRY([[maybe_unused]] size_t least, scratch_bytes(options.memory_bytes));
    job->capture_work.check_components = [request](std::span<const ComponentDims> components) {
      return validate_components(request, components);
    };
  }
  return {};
}

/// How each job was checked, before anything is written; fewer than jobs: one of them is wrong.
Result<std::vector<ExportCheck>> check_jobs(const ExportJobs& jobs, const Backend& backend,
                                            const Environment& environment, Terminal& terminal) {
  std::vector<ExportCheck> checks;
  for (const auto& job : jobs) {
    if (job->earlier) {
      checks.push_back(*job->earlier);
      continue;
    }
    ARGOSY_TRY(std::optional<ExportCheck> check, check_before_writing(*job, backend, environment, terminal));
    if (!check) break;
    checks.push_back(*std::move(check));
  }
  return checks;
}

/// How many stages the export has from here on, 0 if that cannot be told: what Python makes and the cache lacks,
/// lowering, checks, writing.
Result<size_t> count_stages(const ExportJobs& jobs, const Environment& environment) {
  size_t count = 2;
  std::set<std::string> made;
  for (const auto& job : jobs) {
    for (const auto& [named, work] :
         {std::pair(&job->options.capture, &job->capture_work), std::pair(&job->options.plan, &job->plan_work)}) {
      ARGOSY_TRY(std::string state, state_in_cache(*named, *work, environment));
      if (!named->empty() || state == kInCache || !made.insert(work->key).second) continue;
      // Nobody knows yet whether the registry has it, or Python is to make it.
      if (!environment.registry.location.empty() && !work->renew) return 0;
      ++count;
    }
    if (sees_values(*job)) ++count;
    if (!job->earlier && job->options.check != CheckMode::kOff) ++count;
  }
  return count;
}

Result<ExitCode> export_model(const ExportOptions& options, const Backend& backend, const Environment& environment,
                              Terminal& terminal, Diagnostics& diagnostics) {
  const auto start = Clock::now();
  ExportDestination destination = export_destination(options.output, options.source.model, backend.suffix);
  ARGOSY_TRY_STATUS(check_replaceable(destination));
  if (options.least.are_any() && options.check != CheckMode::kFull) {
    return fail(ErrorCode::kInvalidInput,
                "--min-agreement, --min-cosine and --max-kl are about the model's own weights", "add --check full");
  }
  if (options.dry_run) {
    ARGOSY_TRY(std::string missing, missing_parts(options.source, ModelParts::kWeights, environment));
    if (!missing.empty()) {
      terminal.summary().members().key("dry_run").value(true).key("would_download").value(missing);
      if (!terminal.wants_json())
        terminal.print(format("the Hub's cache lacks {}, which would be downloaded first\n", missing));
      return kDone;
    }
  }
  ARGOSY_TRY(ExportJobs jobs, find_jobs(options, backend, destination, environment, terminal));
  ARGOSY_TRY_STATUS(validate(jobs, backend, destination, diagnostics));
  if (options.dry_run) {
    ARGOSY_TRY_STATUS(dry_run(options, backend, jobs, destination, environment, diagnostics, terminal));
    return kDone;
  }
  ARGOSY_TRY(size_t stages, count_stages(jobs, environment));
  terminal.expect_stages(stages);
  ARGOSY_TRY_STATUS(obtain_captures(jobs, environment, terminal));
  ARGOSY_TRY_STATUS(see_values(jobs, backend, destination, environment, terminal));
  terminal.begin_stage(format("Lowering to {}", backend.name));
  ARGOSY_TRY(std::unique_ptr<Export> prepared, prepare(jobs, backend, destination, diagnostics));
  terminal.end_stage();
  warn_of_fixed_dims(*prepared, terminal);
  for (const std::string& note : diagnostics.notes) terminal.log(LogLevel::kWarn, note);
  ARGOSY_TRY(std::vector<ExportCheck> checks, check_jobs(jobs, backend, environment, terminal));
  if (checks.size() < jobs.size()) {
    terminal.print_error(
        format("argosy: nothing is written to {}; --check off exports it anyway\n", destination.path.string()));
    terminal.summary().set_failure("wrong-results", "the export differs from the model on a small random-weight copy",
                                   "--check off exports it anyway");
    return kWrong;
  }
  ExportWriteOptions write;
  ARGOSY_TRY(write.scratch_bytes, scratch_bytes(options.memory_bytes));
  write.threads = thread_count(options.threads);
  write.check = checks[0];
  write.further_checks.assign(checks.begin() + 1, checks.end());
  write.progress = terminal.progress_hook();
  write.on_warning = [&](const std::string& text) { terminal.log(LogLevel::kWarn, text); };
  auto start_of_writing = Clock::now();
  CheckOutcome full;
  terminal.begin_stage(format("Writing {}", format_bytes(prepared->total_bytes())));
  if (options.check == CheckMode::kFull) {
    write.before_commit = [&](const fs::path& written) -> Result<std::vector<ExportCheck>> {
      terminal.end_stage();
      for (size_t i = 0; i < jobs.size(); ++i) {
        if (jobs[i]->earlier) continue;
        ARGOSY_TRY(checks[i], check_before_commit(written, *jobs[i], backend, environment, terminal, full));
      }
      return checks;
    };
  }
  Status written = prepared->write(write);
  if (!written && full.kind == CheckOutcome::Kind::kWrong) {
    terminal.print_error(
        format("error[wrong-results]: the export differs from the model in the calls above; nothing is written to {}\n"
               "  hint: please report it with these lines; --check off exports it anyway\n",
               destination.path.string()));
    terminal.summary().set_failure("wrong-results", "the export differs from the model with its own weights",
                                   "--check off exports it anyway");
    return kWrong;
  }
  ARGOSY_TRY_STATUS(std::move(written));
  terminal.end_stage();
  const auto end = Clock::now();
  const double writing = std::chrono::duration<double>(end - start_of_writing).count();
  print_summary(*prepared, jobs, checks, backend, writing, std::chrono::duration<double>(end - start).count(),
                terminal);
  write_summary(*prepared, jobs, checks, backend, writing, terminal.summary().members());
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
  auto find_and_export = [&]() -> Result<ExitCode> {
    ARGOSY_TRY_STATUS(find_own_engine(options.backend_options.onnx, environment));
    ARGOSY_TRY_STATUS(find_weight_scheme(options.backend_options.onnx.lowering.quantization, environment));
    return export_model(options, *backend, environment, terminal, diagnostics);
  };
  Result<ExitCode> code = find_and_export();
  if (code) return *code;
  terminal.print_error(code.error());
  if (std::string text = watch.failure_text(); !text.empty()) terminal.print_error(format("  {}\n", text));
  terminal.print_further(diagnostics, code.error());
  return kFailed;
}

}  // namespace argosy::cli
