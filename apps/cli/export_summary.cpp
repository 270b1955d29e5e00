#include "export_summary.h"

#include <algorithm>

#include "base/system.h"
#include "base/text.h"
#include "engines/engine.h"
#include "io/json.h"
#include "table.h"

namespace argosy::cli {
namespace {

std::vector<std::string> component_names(const Export& prepared) {
  std::vector<std::string> names;
  for (const ExportFile& file : prepared.files()) {
    for (const std::string& name : file.components) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);  // each variant has it
    }
  }
  return names;
}

std::string linked_text(const Export& prepared) {
  uint64_t bytes = 0;
  for (const ExportFile& file : prepared.files()) bytes += file.linked_bytes;
  return bytes == 0 ? "" : format(", {} linked", format_bytes(bytes));
}

/// For a shell, in quotes if it needs them.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kHarmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
  if (!text.empty() && text.find_first_not_of(kHarmless) == std::string::npos) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Whether `argosy run` generates text with it from a prompt alone.
bool generates_text(const Export& prepared, const ExportJob& job, const Backend& backend) {
  if (!prepared.destination().is_folder) return false;
  if (backend.name == "executorch") return job.options.backend_options.executorch.task.task == "text-generation";
  const std::vector<std::string> names = component_names(prepared);
  return backend.name == "onnx" && job.options.backend_options.onnx.engine != OnnxOptions().engine &&
         std::ranges::find(names, "decode") != names.end() &&
         std::ranges::all_of(names, [](const std::string& name) { return name == "decode" || name == "prefill"; });
}

}  // namespace

std::string verified_in_words(const std::vector<ExportCheck>& checks) {
  auto are_all = [&](std::string_view kind) {
    return std::ranges::all_of(checks, [&](const ExportCheck& each) { return each.kind == kind; });
  };
  if (are_all("twin")) return "Verified on a small random-weight copy.";
  if (are_all("full")) return "Verified with the model's own weights.";
  if (are_all("off")) return "Not verified: --check off.";
  if (are_all("none")) return format("Not verified: {}.", checks[0].why);
  auto is_verified = [](const ExportCheck& each) { return each.kind == "twin" || each.kind == "full"; };
  return std::ranges::all_of(checks, is_verified) ? "Verified, as said above."
                                                  : "Not all of it is verified, see above.";
}

std::string next_step(const Export& prepared, const ExportJobs& jobs, const Backend& backend) {
  std::filesystem::path path = prepared.destination().path;
  if (backend.name == "pt2") {
    if (prepared.destination().is_folder) path /= prepared.files()[0].file;
    return format("in Python, torch.export.load({})", quoted(path.native(), 1000));
  }
  const engines::Engine* engine = engines::find_engine(jobs[0]->options.backend_options.onnx.engine);
  const bool has_folders = jobs.size() > 1 && (engine == nullptr || !engine->limits.has_variants);
  if (has_folders) path /= jobs[0]->variant;
  const std::string word = shell_word(path.string());
  if (generates_text(prepared, *jobs[0], backend)) return format("argosy run {} --prompt \"Hello\"", word);
  return format("argosy explain {}", word);
}

void write_files(const Export& prepared, JsonWriter& writer) {
  const ExportDestination& destination = prepared.destination();
  writer.key("files").begin_array();
  for (const ExportFile& file : prepared.files()) {
    std::filesystem::path folder = destination.is_folder ? destination.path : destination.path.parent_path();
    writer.begin_object().key("path").value((folder / file.file).string()).key("bytes").value(file.bytes);
    writer.key("linked_bytes").value(file.linked_bytes).key("components").begin_array();
    for (const std::string& name : file.components) writer.value(name);
    writer.end_array().end_object();
  }
  writer.end_array().key("total_bytes").value(prepared.total_bytes());
}

void write_summary(const Export& prepared, const ExportJobs& jobs, const std::vector<ExportCheck>& checks,
                   const Backend& backend, double writing, JsonWriter& writer) {
  const ExportOptions& options = jobs[0]->options;
  auto write_lines = [&](const char* key, const std::vector<std::string>& lines) {
    writer.key(key).begin_array();
    for (const std::string& line : lines) writer.value(line);
    writer.end_array();
  };
  writer.key("output").value(prepared.destination().path.string());
  writer.key("is_folder").value(prepared.destination().is_folder);
  writer.key("model").value(options.source.model).key("model_class").value(prepared.model_class());
  writer.key("engine");
  backend.name == "onnx" ? writer.value(options.backend_options.onnx.engine) : writer.null();
  write_files(prepared, writer);
  write_lines("components", component_names(prepared));
  write_lines("summary", prepared.summary());
  write_lines("limits", prepared.limits());
  write_lines("fixed_dims", prepared.fixed_dims());
  writer.key("checks").begin_array();
  bool is_verified = true;
  for (size_t i = 0; i < jobs.size(); ++i) {
    is_verified = is_verified && (checks[i].kind == "twin" || checks[i].kind == "full");
    writer.begin_object().key("variant").value(jobs[i]->variant).key("kind").value(checks[i].kind);
    writer.key("why").value(checks[i].why).key("compared").value(checks[i].compared).key("quality");
    auto quality = JsonDocument::parse(checks[i].quality, "quality");
    quality ? writer.value(quality->root()) : writer.null();
    writer.end_object();
  }
  writer.end_array().key("is_verified").value(is_verified);
  writer.key("writing_seconds").value(writing).key("peak_memory_bytes").value(system::peak_rss_bytes());
  writer.key("next").value(next_step(prepared, jobs, backend));
}

void print_summary(const Export& prepared, const ExportJobs& jobs, const std::vector<ExportCheck>& checks,
                   const Backend& backend, double writing, double all, Terminal& terminal) {
  const std::vector<std::string> names = component_names(prepared);
  const std::string variants = jobs.size() == 1 ? "" : format(", {} variants", jobs.size());
  const ExportDestination& destination = prepared.destination();
  terminal.log(LogLevel::kInfo,
               format("written in {:.1f} s ({}/s), peak memory {}", writing,
                      format_bytes(static_cast<uint64_t>(static_cast<double>(prepared.total_bytes()) / writing)),
                      format_bytes(system::peak_rss_bytes())));
  terminal.print_error(format("argosy: {}, {} ({}){}{}\n", prepared.model_class(), count_of(names.size(), "component"),
                              join(names, ", "), variants, linked_text(prepared)));
  for (const std::string& line : prepared.summary()) terminal.print_error(format("argosy: {}\n", line));
  for (const std::string& line : prepared.limits()) terminal.print_error(format("argosy: {}\n", line));
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs.size() == 1 && checks[i].compared.empty()) continue;  // the line below says it
    const std::string of = jobs[i]->variant.empty() ? "" : format(" of {}", jobs[i]->variant);
    terminal.print_error(format("argosy: check{}: {}\n", of, checks[i].text()));
  }
  terminal.print_error(format("Exported to {} ({}, {:.1f} s). {}\n",
                              terminal.emphasized(destination.path.string() + (destination.is_folder ? "/" : "")),
                              format_bytes(prepared.total_bytes()), all, verified_in_words(checks)));
  terminal.print_error(format("Next: {}\n", terminal.emphasized(next_step(prepared, jobs, backend))));
}

}  // namespace argosy::cli
